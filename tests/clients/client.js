// Clients of the matrix that node has to play. usage: node client.js KIND URL, with the way out in HTTP_PROXY, or
// without that variable by the name of the host.
//   request    a node program with an agent of its own: absolute form for http, CONNECT for https
//   h2         HTTP/2 through CONNECT
//   websocket  ws: by an upgrade through the proxy, wss: through CONNECT
//   socks      no request: connects descriptors 0 and 1 to the URL's host and port by SOCKS5
//   forward    the same for who connects to that port of the guest's own loopback; says so when it listens
'use strict';
const crypto = require('crypto');
const http = require('http');
const http2 = require('http2');
const net = require('net');
const tls = require('tls');

const [kind, text] = process.argv.slice(2);
const url = new URL(text);
const proxy = process.env.HTTP_PROXY ? new URL(process.env.HTTP_PROXY) : null;
const port = Number(url.port || (url.protocol === 'http:' ? 80 : 443));
const fail = (why) => { console.error(String(why)); process.exit(1); };
process.on('uncaughtException', fail);
setTimeout(() => fail('too slow'), 20000);

function connectThrough(done) {
  if (!proxy) {
    const socket = net.connect(port, url.hostname, () => done(socket)).on('error', fail);
    return;
  }
  const request = http.request({host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: `${url.hostname}:${port}`});
  request.on('connect', (response, socket) => {
    if (response.statusCode !== 200) fail(response.statusMessage);
    done(socket);
  });
  request.on('error', fail);
  request.end();
}

function secured(protocols, done) {
  connectThrough((socket) => {
    const secure = tls.connect({socket, servername: url.hostname, ALPNProtocols: protocols}, () => done(secure));
    secure.on('error', fail);
  });
}

function show(response) {
  if (response.statusCode >= 400) fail(response.statusMessage);
  response.pipe(process.stdout);
  response.on('end', () => process.exit(0));
}

function websocket(options) {
  const key = crypto.randomBytes(16).toString('base64');
  const headers = {Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key};
  const request = http.request({...options, headers: {...headers, Host: url.host}});
  request.on('response', (response) => fail(response.statusMessage));
  request.on('error', fail);
  request.on('upgrade', (response, socket, head) => {
    const expected = crypto.createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
    if (response.headers['sec-websocket-accept'] !== expected) fail('a wrong Sec-WebSocket-Accept');
    const mask = Buffer.from([1, 2, 3, 4]);
    const said = Buffer.from('ping').map((byte, i) => byte ^ mask[i]);
    socket.write(Buffer.concat([Buffer.from([0x81, 0x84]), mask, said]));
    socket.on('data', (bytes) => {
      console.log(bytes.subarray(2).toString());
      process.exit(0);
    });
    if (head.length > 0) socket.unshift(head);
  });
  request.end();
}

function socks(input, output, done) {
  const socket = net.connect(proxy.port, proxy.hostname);
  const name = Buffer.from(url.hostname);
  const ending = Buffer.from([port >> 8, port & 255]);
  let got = Buffer.alloc(0);
  socket.on('error', fail);
  socket.write(Buffer.from([5, 1, 0]));
  socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, ending]));
  socket.on('data', function begin(bytes) {
    got = Buffer.concat([got, bytes]);
    if (got.length < 12) return;
    if (got[3] !== 0) fail(`SOCKS reply ${got[3]}`);
    socket.off('data', begin);
    output.write(got.subarray(12));
    socket.pipe(output);
    input.pipe(socket);
  });
  socket.on('close', done);
}

// Where a plain request is sent, and what it asks for there.
const plainly = proxy ? {host: proxy.hostname, port: proxy.port, path: url.href} : {host: url.hostname, port, path: url.pathname};

if (kind === 'request') {
  if (url.protocol === 'http:') {
    http.get({...plainly, headers: {Host: url.host}}, show).on('error', fail);
  } else {
    secured(['http/1.1'], (socket) => {
      http.get({createConnection: () => socket, path: url.pathname, headers: {Host: url.host}}, show).on('error', fail);
    });
  }
} else if (kind === 'h2') {
  secured(['h2'], (socket) => {
    const session = http2.connect(url.origin, {createConnection: () => socket});
    session.on('error', fail);
    const stream = session.request({':path': url.pathname});
    stream.on('data', (bytes) => process.stdout.write(bytes));
    stream.on('end', () => process.exit(0));
  });
} else if (kind === 'websocket') {
  if (url.protocol === 'http:') {
    websocket(plainly);
  } else {
    secured(['http/1.1'], (socket) => websocket({createConnection: () => socket, path: url.pathname}));
  }
} else if (kind === 'socks') {
  socks(process.stdin, process.stdout, () => process.exit(0));
} else if (kind === 'forward') {
  net.createServer((local) => {
    local.on('error', () => {});
    socks(local, local, () => local.destroy());
  }).listen(port, '127.0.0.1', () => console.log('listening'));
} else {
  fail('which client?');
}
