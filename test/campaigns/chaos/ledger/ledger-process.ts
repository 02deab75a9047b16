/**
 * The ledger: a process that nobody strikes. It writes each line that it is told into its file, and answers when it is written. One
 * file, one order, one clock for everything that was seen from outside.
 */
import { openSync, writeSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';

const [path = ''] = process.argv.slice(2);
const file = openSync(path, 'a');
let lines = 0;

const server = createServer({ noDelay: true }, (socket) => {
  let rest = '';
  let who = '';
  socket.setEncoding('utf8');
  socket.on('error', () => undefined);
  socket.on('data', (data: string) => {
    const parts = (rest + data).split('\n');
    rest = parts.pop() ?? '';
    if (who === '') who = JSON.stringify(parts.shift() ?? '');
    if (parts.length === 0) return;
    const at = (performance.timeOrigin + performance.now()).toFixed(3);
    // A statement is a JSON object that begins with a brace: what the ledger knows goes in front of it.
    const text = parts.map((part) => `{"n":${String(lines++)},"at":${at},"who":${who},${part.slice(1)}\n`).join('');
    writeSync(file, text);
    socket.write(`${String(parts.length)}\n`);
  });
});

// Without the campaign nobody needs this process.
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
