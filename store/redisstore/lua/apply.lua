-- ARGV: the nonce, and the actions as JSON. The members of an action are: k kind, s stream, h shard, e epoch, n session,
-- b heartbeat count, v lease, p position, o sort key of the position, w born, y on, m note of a pause.
local does = {}

function does.create(a) return create(field(a.s, a.h), a.v) end

function does.end_session(a)
  local row = session(a.n)
  if not row or row.b ~= a.b then return false end
  row.e = '1'
  keep(a.n, row)
  return true
end

function does.forget(a)
  local row = session(a.n)
  if not row or row.e ~= '1' then return false end
  redis.call('HDEL', SESSIONS, a.n)
  return true
end

function does.tell() return true end -- each heartbeat reads the leases anyway

function does.drain(a)
  local row = session(a.n)
  if not row or row.e == '1' then return false end
  row.d = a.y
  keep(a.n, row)
  return true
end

function does.pause(a)
  if a.y ~= '1' then
    redis.call('SREM', PAUSED, a.s)
    redis.call('HDEL', APP, 'pause:' .. a.s)
    return true
  end
  if redis.call('SISMEMBER', PAUSED, a.s) == 0 and redis.call('SCARD', PAUSED) >= tonumber(a.b) then return false end
  touch()
  redis.call('SADD', PAUSED, a.s)
  if a.m ~= '' then redis.call('HSET', APP, 'pause:' .. a.s, a.m) else redis.call('HDEL', APP, 'pause:' .. a.s) end
  return true
end

local on = {}

function on.assign(a, f, l)
  if l.p == 'end' then return false end
  l.r = ''
  if a.d and a.d ~= '' then l.d = a.d end
  own(f, l, a.n)
  return true
end

function on.handoff(a, f, l)
  if l.o == '' or l.o == a.n then return false end
  l.h = a.n
  return true
end

function on.revoke(a, f, l)
  if l.o == '' then return false end
  l.r = l.o
  own(f, l, '')
  return true
end

function on.delete(a, f, l)
  if l.o ~= '' then return false end
  leases[f] = false
  return true
end

function on.move(a, f, l)
  l.p, l.k, l.d, l.q = a.p, a.o, '', ''
  if a.w ~= '0' then l.b = a.w end
  if l.o ~= '' then l.r = l.o end
  own(f, l, '')
  return true
end

function on.replace(a, f, l)
  if l.o ~= '' then return false end
  leases[f] = a.v
  return true
end

function on.birth(a, f, l)
  if l.b ~= '0' then return false end
  l.b = a.w
  return true
end

local answer = {}
for i, a in ipairs(cjson.decode(ARGV[2])) do
  local done
  if does[a.k] then
    done = does[a.k](a)
  else
    local f = field(a.s, a.h)
    local l = lease(f)
    done = l and l.e == a.e and on[a.k](a, f, l)
    if done then changed[f], moved = true, true end
  end
  answer[i] = done and 1 or 0
end
flush()
return answer
