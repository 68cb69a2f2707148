-- ARGV: the nonce, the session, and its progress as JSON.
local name = ARGV[2]
local row = session(name)
if row and row.e ~= '1' then
  for _, p in ipairs(cjson.decode(ARGV[3])) do progress(name, p) end
end
flush()
local flat = redis.call('HGETALL', LEASES)
for i = 1, #flat, 2 do
  local f, l = flat[i], cjson.decode(flat[i + 1])
  leases[f] = l
  if l.o == name then own(f, l, heir(l)) end
  if l.r == name then
    l.r = ''
    changed[f], moved = true, true
  end
end
flush()
if app and app.leader == name then lead('') end
redis.call('HDEL', SESSIONS, name)
return 1
