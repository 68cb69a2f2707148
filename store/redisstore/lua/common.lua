-- This is the common beginning of the scripts. KEYS are the keys of one application, in one slot. ARGV[1] is a nonce.
--
-- A lease is a JSON object. All its members are strings: f (the fields that never change; only the client reads them),
-- e epoch, o owner, h heir, r revoked, l last, u shunned, p position, k sort key of the position, w load, b born,
-- d deaths, q numbers (nil if there are none), n rate (nil if not reported). The members of a session are: b heartbeat count, e ended, d drain, t times, s streams
-- (nil if not reported), x (the other fields; only the client reads them). Counts are decimal strings, because Lua's
-- numbers are exact only below 2^53.
local APP, LEASES, SESSIONS, OWNED, PAUSED = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NONCE = ARGV[1]
local JUMP = 1048576 -- above the number of epochs, terms and revisions that a failover can lose

-- add returns the decimal number s plus n.
local function add(s, n)
  if #s <= 15 then return string.format('%.0f', tonumber(s) + n) end
  local head, tail = s:sub(1, -16), tonumber(s:sub(-15)) + n
  if tail >= 1e15 then head, tail = add(head, 1), tail - 1e15 end
  return head .. string.format('%015.0f', tail)
end

local app = nil -- the application's record; nil if the application does not exist
do
  local flat = redis.call('HGETALL', APP)
  if #flat > 0 then
    app = {}
    for i = 1, #flat, 2 do app[flat[i]] = flat[i + 1] end
  end
end

-- If a later version of weir has changed the format of the stored data, the script changes nothing.
local FORMAT = 1
if app and app.format and (tonumber(app.format) or FORMAT + 1) > FORMAT then return redis.error_reply('WEIRFORMAT ' .. app.format) end

-- run identifies this run of this server. It changes after a restart and on a promoted replica. It is empty if the server
-- hides it.
local run = redis.call('INFO', 'server'):match('run_id:(%x+)') or ''

-- touch creates the application's record before the first write.
local function touch()
  if app == nil then
    app = {run = run, token = NONCE, leader = '', term = '0', revision = '0'}
    redis.call('HSET', APP, 'run', app.run, 'token', app.token, 'leader', '', 'term', '0', 'revision', '0')
  end
end

local leases, changed = {}, {} -- by field: leases that were read (false if absent), and fields to write
local moved = false            -- a lease has changed in a way that views must show

local function field(stream, shard) return stream .. '\0' .. shard end

local function lease(f)
  if leases[f] == nil then
    local v = redis.call('HGET', LEASES, f)
    leases[f] = v and cjson.decode(v)
  end
  return leases[f]
end

-- disown and enown update the index of owned leases. A member of the index is the session, a zero byte and the field.
local function disown(f, l)
  if l.o ~= '' then redis.call('ZREM', OWNED, l.o .. '\0' .. f) end
end

local function enown(f, l)
  if l.o ~= '' then redis.call('ZADD', OWNED, 0, l.o .. '\0' .. f) end
end

-- own makes a session the owner and fences the previous owner. If the session is empty, the lease has no owner afterwards.
local function own(f, l, session)
  touch()
  disown(f, l)
  l.o, l.h, l.e = session, '', add(l.e, 1)
  if session ~= '' then l.l, l.u = session, '' end
  enown(f, l)
  changed[f], moved = true, true
end

local function create(f, l)
  if lease(f) then return false end
  touch()
  leases[f] = l
  enown(f, l)
  changed[f], moved = true, true
  return true
end

local function heir(l) return l.h == '~' and '' or l.h end

local function session(name)
  local v = redis.call('HGET', SESSIONS, name)
  return v and cjson.decode(v)
end

local function keep(name, row)
  touch()
  redis.call('HSET', SESSIONS, name, cjson.encode(row))
end

-- flush writes the changed leases.
local function flush()
  for f in pairs(changed) do
    if leases[f] then
      redis.call('HSET', LEASES, f, cjson.encode(leases[f]))
    else
      redis.call('HDEL', LEASES, f)
    end
  end
  changed = {}
  if moved then
    app.revision = add(app.revision, 1)
    redis.call('HSET', APP, 'revision', app.revision)
    moved = false
  end
end

-- leads returns the leader's session, term and heartbeat count. There is no leader if its session has ended or left.
local function leads()
  if app == nil then return '', '0', '0' end
  local row = app.leader ~= '' and session(app.leader)
  if not row or row.e == '1' then return '', app.term, '0' end
  return app.leader, app.term, row.b
end

local function lead(name)
  touch()
  app.leader, app.term = name, add(app.term, 1)
  redis.call('HSET', APP, 'leader', name, 'term', app.term)
end

-- progress executes a session's report about one lease. Sort keys consist of digits, and of colons in fixed places, so the
-- operator < sorts them in the same order in every locale.
local function progress(name, p)
  local f = field(p.s, p.h)
  local l = lease(f)
  if not l then return end
  if l.o == name and l.e == p.e then
    if l.k < p.k then
      l.p, l.k = p.p, p.k
      changed[f] = true
    end
    if p.w ~= '0' and (l.w ~= p.w or l.n ~= p.n) then
      l.w, l.n = p.w, p.n
      changed[f] = true
    end
    if p.d and p.d ~= '' then
      l.d = p.d
      changed[f] = true
    end
    if p.q and p.q ~= '' then
      l.q = p.q
      changed[f] = true
    end
    if p.p == 'end' then
      for _, c in ipairs(p.c) do
        create(field(p.s, c.h), {f = c.f, e = '1', o = '', h = '', r = '', l = '', u = '', p = c.p, k = c.k, w = '0', b = l.b})
      end
      own(f, l, '')
    elseif p.r == '1' then
      own(f, l, heir(l))
      if p.t == '1' and l.o == '' then l.u = name end
    end
  elseif l.r == name and p.r == '1' and add(p.e, 1) == l.e then
    l.r = ''
    changed[f], moved = true, true
  end
end

-- If the server has restarted, or is a promoted replica, it may have lost the last writes. It is then unknown which worker
-- may still act on which lease, so all sessions end. A session that never sends a heartbeat owns all leases until the
-- leader finds it dead. That takes at least as long as any worker may still act on its leases. The epochs and the term
-- increase by JUMP, so that no lost value is used again.
if app ~= nil and app.run ~= run then
  local ghost = 'lost:' .. NONCE
  redis.call('DEL', OWNED, SESSIONS)
  local flat = redis.call('HGETALL', LEASES)
  for i = 1, #flat, 2 do
    local f, l = flat[i], cjson.decode(flat[i + 1])
    l.e, l.o, l.h, l.r = add(l.e, JUMP), '', '', ''
    if l.p ~= 'end' then l.o = ghost end
    enown(f, l)
    redis.call('HSET', LEASES, f, cjson.encode(l))
  end
  app.run, app.token, app.leader, app.term = run, NONCE, '', add(app.term, JUMP)
  redis.call('HSET', APP, 'run', run, 'token', NONCE, 'leader', '', 'term', app.term)
  keep(ghost, {b = '1', e = '0', d = '0', x = '{"name":"lost in a restart or failover of Redis","leaving":true}'})
end
