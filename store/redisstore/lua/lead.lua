-- ARGV: nonce, session or '', term.
local term = app and app.term or '0'
if term ~= ARGV[3] then return 0 end
lead(ARGV[2])
return 1
