// Makes a test server listen on a free port of 127.0.0.1, whatever address and port it asks for.
// Load this file with node -r before the server. The process prints the port that the server asked
// for and the port that it got. It exits at the end of its standard input, so no server outlives
// its test.
'use strict'

const net = require('net')
const listen = net.Server.prototype.listen

net.Server.prototype.listen = function (...args) {
  const callback = args.findLast((a) => typeof a === 'function')
  const wanted = args[0] !== null && typeof args[0] === 'object' ? args[0].port : args[0]
  if (wanted === undefined || Number.isNaN(Number(wanted))) {
    throw new Error('only TCP ports here')
  }
  this.once('listening', () => {
    process.stdout.write(`weir: port ${wanted} is ${this.address().port}\n`)
  })
  return listen.call(this, { port: 0, host: '127.0.0.1' }, callback)
}

process.stdin.resume()
process.stdin.on('end', () => process.exit(0))
process.stdin.on('error', () => process.exit(0))

// dynalite 4.0.0 and kinesalite 3.3.3 would crash when a client disconnects while it sends a
// request.
process.on('uncaughtException', (err) => {
  if (err.code === 'ECONNRESET') return
  console.error(err)
  process.exit(1)
})
