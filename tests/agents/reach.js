// What can be reached from where this runs? One line each: NAME reached|refused DETAIL.
// usage: node reach.js PLAN.json with { "read": {NAME: PATH}, "write": {NAME: PATH}, "connect": {NAME: [ADDRESS, PORT]},
//   "abstract": {NAME: SOCKET}, "through_proxy": {NAME: "HOST:PORT"} }
'use strict';
const { execFileSync } = require('child_process');
const fs = require('fs');
const net = require('net');

const plan = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const say = (name, reached, detail) => console.log(`${name} ${reached ? 'reached' : 'refused'} ${detail}`);
const each = async (part, ask) => {
  for (const [name, subject] of Object.entries(plan[part] || {})) {
    try {
      say(name, true, await ask(subject));
    } catch (problem) {
      say(name, false, problem.code || problem.message);
    }
  }
};

// Resolves once connected, with the socket; rejects with the reason.
const connect = (options) => new Promise((resolve, reject) => {
  const socket = net.connect(options, () => resolve(socket));
  socket.setTimeout(5000, () => reject(new Error('timeout')));
  socket.on('error', reject);
});

// By perl, as Node's own way to name an abstract socket differs between its versions.
function connectAbstract(name) {
  const program = 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un("\\0$ARGV[0]")) or print "$!"';
  const problem = execFileSync('perl', ['-MSocket', '-e', program, name], { encoding: 'utf8' });
  if (problem) throw new Error(problem);
  return 'connected';
}

// The proxy's answer to CONNECT; a status other than 200 is a refusal, told with the body's text.
async function throughProxy(target) {
  if (!process.env.HTTPS_PROXY) throw new Error('no proxy is set');
  const proxy = new URL(process.env.HTTPS_PROXY);
  const socket = await connect({ host: proxy.hostname.replace(/^\[|\]$/g, ''), port: Number(proxy.port) });
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  let answer = '';
  for await (const chunk of socket) {
    answer += chunk;
    if (/^HTTP\/1.1 200/.test(answer)) break;
  }
  socket.destroy();
  const status = answer.split('\r\n')[0];
  if (!/ 200 /.test(status + ' ')) throw new Error(answer.replace(/\s+/g, ' '));
  return status;
}

(async () => {
  await each('read', (path) => fs.readFileSync(path, 'utf8').trim());
  await each('write', (path) => { fs.writeFileSync(path, 'planted\n'); return 'written'; });
  await each('connect', async ([host, port]) => { (await connect({ host, port })).destroy(); return 'connected'; });
  await each('abstract', connectAbstract);
  await each('through_proxy', throughProxy);
})();
