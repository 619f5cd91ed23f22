// A program that knows no proxy: what does each address give? One line each: NAME TEXT.
// usage: node client.js NAME=URL... (http, https; tcp://HOST:PORT for what the server says first; udp://HOST:PORT)
'use strict';
const dgram = require('dgram');
const net = require('net');

const speaksFirst = (host, port, family) => new Promise((resolve, reject) => {
  const socket = net.connect({ host, port, family }, () => {});
  let text = '';
  socket.on('data', (chunk) => { text += chunk; });
  socket.on('end', () => resolve(text || 'nothing'));
  socket.on('error', reject);
});

const sendUdp = (host, port) => new Promise((resolve, reject) => {
  const socket = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
  socket.on('error', reject);
  socket.on('message', () => resolve('answered'));
  socket.connect(port, host, (problem) => {
    if (problem) return reject(problem);
    socket.send('x');
  });
});

async function ask(url) {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'tcp:') return speaksFirst(host, Number(port), 0);
  if (protocol === 'tcp6:') return speaksFirst(host, Number(port), 6);
  if (protocol === 'udp:') return sendUdp(host, Number(port));
  return (await fetch(url)).text();
}

(async () => {
  for (const argument of process.argv.slice(2)) {
    const [name, url] = argument.split(/=(.*)/);
    const text = await ask(url).catch((problem) => (problem.cause || problem).code || String(problem.cause || problem));
    console.log(`${name} ${text.trim()}`);
  }
  process.exit(0);
})();
