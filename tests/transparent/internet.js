// Servers of the test's internet: https on 443 and 8443, http on 80, and one that speaks first on 22.
// usage: node internet.js CERT KEY
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');
const net = require('net');

const [cert, key] = process.argv.slice(2).map((path) => fs.readFileSync(path));
const answer = (request, response) => response.end(`from ${request.headers.host}\n`);
const servers = [
  [https.createServer({ cert, key }, answer), 443],
  [https.createServer({ cert, key }, answer), 8443],
  [http.createServer(answer), 80],
  [net.createServer((socket) => socket.on('error', () => {}).end('SSH-2.0-test\r\n')), 22],
];
let left = servers.length;
for (const [server, port] of servers) server.listen(port, '::', () => --left || console.log('ready'));
