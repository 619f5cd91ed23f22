// The hosts of the client matrix: HTTP/1.1 on 80, HTTP/2 and HTTP/1.1 over TLS on 443, something that greets like ssh on
// 22, a PostgreSQL that answers every query on 5432, a Redis that answers every command on 6379. usage: node servers.js ADDRESS FOLDER (with cert.pem, key.pem, repo.git); one line per request to FOLDER/log.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const net = require('net');
const path = require('path');

const [address, folder] = process.argv.slice(2);
const marker = 'hello-from-the-host';
const note = (text) => fs.appendFileSync(path.join(folder, 'log'), text + '\n');

function npmPackage(base) {
  const version = {name: 'greeting', version: '1.0.0', description: marker, dist: {tarball: base + '/g.tgz', shasum: '0'}};
  return JSON.stringify({name: 'greeting', 'dist-tags': {latest: '1.0.0'}, versions: {'1.0.0': version}});
}

function answer(request, response) {
  const host = request.headers[':authority'] || request.headers.host;
  note(`${host} ${request.method} ${request.url} HTTP/${request.httpVersion}`);
  const file = path.normalize(request.url.split('?')[0]);
  if (file.startsWith('/repo.git/')) {
    fs.readFile(path.join(folder, file), (error, bytes) => {
      response.writeHead(error ? 404 : 200, {'content-type': 'application/octet-stream'});
      response.end(error ? '' : bytes);
    });
  } else if (file === '/npm/greeting') {
    response.writeHead(200, {'content-type': 'application/json'});
    response.end(npmPackage('http://' + host + '/npm'));
  } else if (file === '/cargo/config.json') {
    response.end(JSON.stringify({dl: 'http://' + host + '/none', api: 'http://' + host}));
  } else if (file === '/cargo/gr/ee/greeting') {
    response.end(JSON.stringify({name: 'greeting', vers: '1.0.0', deps: [], cksum: '0'.repeat(64), features: {}, yanked: false}));
  } else if (file === '/go/example.test/greeting/@v/list') {
    response.end('v1.0.0-' + marker + '\n');
  } else if (file === '/events') {
    response.writeHead(200, {'content-type': 'text/event-stream'});
    response.write('data: first\n\n');
    setTimeout(() => response.end(`data: ${marker}\n\n`), 300);
  } else if (request.method === 'POST') {
    let size = 0;
    request.on('data', (bytes) => { size += bytes.length; });
    request.on('end', () => response.end(`${marker} ${size}\n`));
  } else {
    response.end(marker + '\n');
  }
}

// One text frame of less than 126 bytes (RFC 6455, section 5.2).
function upgrade(request, socket) {
  note(`${request.headers.host} ${request.method} ${request.url} websocket`);
  const accept = crypto.createHash('sha1')
    .update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  // What the client sends comes back without its mask, after the greeting.
  socket.on('data', (bytes) => {
    const mask = bytes.subarray(2, 6);
    const text = Buffer.from(bytes.subarray(6)).map((byte, i) => byte ^ mask[i % 4]);
    const reply = Buffer.concat([Buffer.from(marker + ' '), text]);
    socket.write(Buffer.concat([Buffer.from([0x81, reply.length]), reply]));
  });
}

function message(type, ...parts) {
  const body = Buffer.concat(parts.map((part) => Buffer.isBuffer(part) ? part : Buffer.from(part)));
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

// https://www.postgresql.org/docs/15/protocol-message-formats.html: no TLS, no password, one row for every query.
function postgres(socket) {
  note('postgres');
  let begun = false;
  socket.on('error', () => {});
  const ready = message('Z', 'I');
  socket.on('data', (bytes) => {
    if (!begun && bytes.length === 8) return socket.write('N');
    if (!begun) {
      begun = true;
      return socket.write(Buffer.concat([message('R', Buffer.alloc(4)), message('S', 'server_version\0' + '15\0'), ready]));
    }
    if (bytes[0] !== 0x51) return socket.end();
    const field = Buffer.from([0, 1, 0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    const value = Buffer.from([0, 1, 0, 0, 0, marker.length]);
    socket.write(Buffer.concat([message('T', field), message('D', value, marker), message('C', 'SELECT 1\0'), ready]));
  });
}

function redis(socket) {
  note('redis');
  socket.on('error', () => {});
  socket.on('data', () => socket.write(`$${marker.length}\r\n${marker}\r\n`));
}

const secure = {cert: fs.readFileSync(path.join(folder, 'cert.pem')), key: fs.readFileSync(path.join(folder, 'key.pem'))};
const servers = [
  [http.createServer(answer).on('upgrade', upgrade), 80],
  [http2.createSecureServer({...secure, allowHTTP1: true}, answer).on('upgrade', upgrade), 443],
  [net.createServer((socket) => {
    note('ssh');
    socket.on('error', () => {});
    socket.write(`SSH-2.0-${marker}\r\n`);
    socket.once('data', () => socket.end());
  }), 22],
  [net.createServer(postgres), 5432],
  [net.createServer(redis), 6379],
];
let waiting = servers.length;
for (const [server, port] of servers) {
  server.listen(port, address, () => { if (--waiting === 0) console.log('ready'); });
}
