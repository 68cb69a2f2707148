-- ARGV: nonce, session, whether it is its first beat, the rest of its row, progress as JSON, its times if it is the first.
local name = ARGV[2]
local row = session(name)
if not row and ARGV[3] == '1' then row = {b = '0', e = '0', d = '0'} end
if not row or row.e == '1' then return {'over'} end
row.b, row.x = add(row.b, 1), ARGV[4]
if ARGV[3] == '1' then row.t = ARGV[6] end
keep(name, row)
for _, p in ipairs(cjson.decode(ARGV[5])) do progress(name, p) end
flush()

local answer = {'ok', leads()}
local members = redis.call('ZRANGEBYLEX', OWNED, '[' .. name .. '\0', '(' .. name .. '\1')
for i = 1, #members, 1000 do
  local fields = {}
  for j = i, math.min(i + 999, #members) do fields[#fields + 1] = members[j]:sub(#name + 2) end
  local values = redis.call('HMGET', LEASES, unpack(fields))
  for j = 1, #fields do
    answer[#answer + 1] = fields[j]
    answer[#answer + 1] = values[j]
  end
end
return answer
