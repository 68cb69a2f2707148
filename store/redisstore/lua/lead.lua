-- ARGV: the nonce, the session (empty for no leader), and the term that the caller knows.
local term = app and app.term or '0'
if term ~= ARGV[3] then return 0 end
lead(ARGV[2])
return 1
