-- ARGV: the nonce, and the revision that the caller knows.
if app == nil then return {'', 0, '', '0', '0', {}, {}, {}, {}} end
local revision = app.token .. '.' .. app.revision
local same = revision == ARGV[2]
local leader, term, beat = leads()
local paused, notes = redis.call('SMEMBERS', PAUSED), {}
for i, stream in ipairs(paused) do notes[i] = app['pause:' .. stream] or '' end
return {revision, same and 1 or 0, leader, term, beat, paused,
  same and {} or redis.call('HGETALL', LEASES), redis.call('HGETALL', SESSIONS), notes}
