// A gRPC service and a client of it, both by grpc-js; messages are plain text, so there is no .proto. One call of each
// kind. usage, with grpc-js in NODE_PATH:
//   node grpc.js serve ADDRESS FOLDER     (with cert.pem and key.pem) TLS on 50052, clear text on 50051; a line for each
//                                         call to FOLDER/log
//   node grpc.js call HOST:PORT [CA.pem]  in clear text without a CA; goes by the variables that grpc-js reads
'use strict';
const fs = require('fs');
const path = require('path');
const grpc = require('@grpc/grpc-js');

const marker = 'hello-from-the-host';
const text = {serialize: (said) => Buffer.from(said), deserialize: (bytes) => bytes.toString()};
const method = (name, requestStream, responseStream) => ({
  path: '/test.Greeter/' + name, requestStream, responseStream,
  requestSerialize: text.serialize, requestDeserialize: text.deserialize,
  responseSerialize: text.serialize, responseDeserialize: text.deserialize,
});
const service = {
  one: method('One', false, false),
  down: method('Down', false, true),
  up: method('Up', true, false),
  both: method('Both', true, true),
};

function serve(address, folder) {
  const note = (call) => fs.appendFileSync(path.join(folder, 'log'), `${call.getHost()} ${call.getPath()}\n`);
  const server = new grpc.Server();
  server.addService(service, {
    one(call, answer) {
      note(call);
      answer(null, `${marker} ${call.request}`);
    },
    down(call) {
      note(call);
      for (let i = 0; i < Number(call.request); ++i) call.write(`${marker} ${i}`);
      call.end();
    },
    up(call, answer) {
      note(call);
      let size = 0;
      call.on('data', (said) => { size += said.length; });
      call.on('end', () => answer(null, `${marker} ${size}`));
    },
    both(call) {
      note(call);
      call.on('data', (said) => call.write(`${marker} ${said}`));
      call.on('end', () => call.end());
    },
  });
  const pair = {cert_chain: fs.readFileSync(path.join(folder, 'cert.pem')), private_key: fs.readFileSync(path.join(folder, 'key.pem'))};
  const ports = [[50051, grpc.ServerCredentials.createInsecure()], [50052, grpc.ServerCredentials.createSsl(null, [pair])]];
  let waiting = ports.length;
  for (const [port, credentials] of ports) {
    server.bindAsync(`${address}:${port}`, credentials, (error) => {
      if (error) throw error;
      if (--waiting === 0) console.log('ready');
    });
  }
}

async function call(target, ca) {
  const credentials = ca ? grpc.credentials.createSsl(fs.readFileSync(ca)) : grpc.credentials.createInsecure();
  const client = new grpc.Client(target, credentials);
  const options = {deadline: Date.now() + 20000};
  const by = (name) => [service[name].path, text.serialize, text.deserialize];
  const none = new grpc.Metadata();
  const gather = (stream, done, fail) => {
    const all = [];
    stream.on('data', (said) => all.push(said)).on('error', fail).on('end', () => done(all.join(',')));
    return stream;
  };
  const answered = (done, fail) => (error, said) => error ? fail(error) : done(said);
  const expect = (name, got, wanted) => {
    if (got !== wanted) throw new Error(`${name}: '${got}'`);
  };
  expect('one', await new Promise((done, fail) => {
    client.makeUnaryRequest(...by('one'), 'ask', none, options, answered(done, fail));
  }), `${marker} ask`);
  expect('down', await new Promise((done, fail) => {
    gather(client.makeServerStreamRequest(...by('down'), '3', none, options), done, fail);
  }), `${marker} 0,${marker} 1,${marker} 2`);
  const large = 'x'.repeat(100000);
  expect('up', await new Promise((done, fail) => {
    const stream = client.makeClientStreamRequest(...by('up'), none, options, answered(done, fail));
    for (let i = 0; i < 10; ++i) stream.write(large);
    stream.end();
  }), `${marker} 1000000`);
  expect('both', await new Promise((done, fail) => {
    const stream = gather(client.makeBidiStreamRequest(...by('both'), none, options), done, fail);
    stream.write('a');
    stream.once('data', () => {  // the second only after the first has come back
      stream.write('b');
      stream.end();
    });
  }), `${marker} a,${marker} b`);
  client.close();
  console.log(marker);
}

const [what, ...words] = process.argv.slice(2);
if (what === 'serve') {
  serve(...words);
} else {
  call(...words).catch((error) => {
    console.error(String(error));
    process.exit(1);
  });
}
