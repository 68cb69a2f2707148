-- ARGV: the nonce, the session, 1 for the first heartbeat of the session, the rest of the session's row, the progress as
-- JSON, the times of the worker (for a first heartbeat), 1 to request the heartbeat counts of the other sessions, the
-- leader's term from which the session resigns (or 0), and the streams that the worker reads.
local name = ARGV[2]
local row = session(name)
if not row and ARGV[3] == '1' then row = {b = '0', e = '0', d = '0'} end
if not row or row.e == '1' then return {'over'} end
row.b, row.x, row.s = add(row.b, 1), ARGV[4], ARGV[9]
if ARGV[3] == '1' then row.t = ARGV[6] end
keep(name, row)
for _, p in ipairs(cjson.decode(ARGV[5])) do progress(name, p) end
flush()

if ARGV[8] ~= '0' and app.leader == name and app.term == ARGV[8] then
  app.leader = ''
  redis.call('HSET', APP, 'leader', '')
end

local others = {}
if ARGV[7] == '1' then
  local flat = redis.call('HGETALL', SESSIONS)
  for i = 1, #flat, 2 do
    -- The leader reports an unreadable row. Such a row must not stop the heartbeats of other sessions.
    local readable, other = pcall(cjson.decode, flat[i + 1])
    if flat[i] ~= name and readable and type(other) == 'table' and other.e == '0' and type(other.b) == 'string' then
      others[#others + 1] = flat[i]
      others[#others + 1] = other.b
    end
  end
end

local answer = {'ok', leads()}
local leader = answer[2] ~= '' and session(answer[2])
answer[#answer + 1] = leader and leader.s or ''
answer[#answer + 1] = others
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
