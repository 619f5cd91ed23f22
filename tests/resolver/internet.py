# Name servers and a web server of a test's own, on the internet side. usage: internet.py LOG
# 45.45.45.2 answers from `first`, 45.45.45.3 from `second`; both log `ask NAME TYPE`. Port 80 of every address answers
# with the address that was connected to, and logs `web ADDRESS HOST`.
import http.server
import socket
import socketserver
import struct
import sys
import threading

A, CNAME, AAAA = 1, 5, 28
PUBLIC, PUBLIC6, PRIVATE = '45.45.45.2', '2606:4545::2', '10.9.9.9'
log_file = open(sys.argv[1], 'a', buffering=1)


def log(*words):
    log_file.write(' '.join(words) + '\n')


# name -> (time to live, {type: answers}) or what goes wrong. A list of addresses in a list is one for each question.
first = {
    'plain.test': (60, {A: [PUBLIC]}),
    'rebind.test': (0, {A: [[PUBLIC], [PRIVATE]]}),
    'zero.test': (0, {A: [PUBLIC]}),
    'mixed.test': (60, {A: [PRIVATE], AAAA: [PUBLIC6]}),
    'six.test': (60, {AAAA: [PUBLIC6]}),
    'private.test': (60, {A: [PRIVATE]}),
    'many.test': (60, {A: ['10.9.%d.%d' % (i // 250, i % 250 + 1) for i in range(299)] + [PUBLIC]}),
    'alias.test': (60, {CNAME: 'denied.test', A: [PUBLIC]}),
    'denied.test': (60, {A: [PUBLIC]}),
    'unknown.test': (60, {A: [PUBLIC]}),
    'broken.test': 'SERVFAIL',
    'silent.test': 'nothing',
}
second = {'moved.test': (60, {A: [PUBLIC]})}
asked = {}


def name_of(message, at):
    labels = []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += message[at] + 1
    return '.'.join(labels).lower(), at + 1


def encoded(name):
    return b''.join(bytes([len(label)]) + label.encode() for label in name.split('.')) + b'\0'


def record(name, kind, ttl, data):
    return encoded(name) + struct.pack('>HHIH', kind, 1, ttl, len(data)) + data


def answer(table, message, most):
    name, end = name_of(message, 12)
    kind = struct.unpack('>H', message[end:end + 2])[0]
    log('ask', name, {A: 'A', AAAA: 'AAAA'}.get(kind, str(kind)))
    entry = table.get(name)
    code, records = 0, []
    if entry == 'nothing':
        return b''
    if entry == 'SERVFAIL':
        code = 2
    elif entry is None:
        code = 3
    else:
        ttl, answers = entry
        owner = name
        if CNAME in answers:
            owner = answers[CNAME]
            records.append(record(name, CNAME, ttl, encoded(owner)))
        found = answers.get(kind, [])
        if found and isinstance(found[0], list):
            turn = asked[name, kind] = asked.get((name, kind), -1) + 1
            found = found[min(turn, len(found) - 1)]
        family = socket.AF_INET6 if kind == AAAA else socket.AF_INET
        records += [record(owner, kind, ttl, socket.inet_pton(family, text)) for text in found]
    body = message[12:end + 4] + b''.join(records)
    flags = 0x8180 | code
    if len(body) + 12 > most:
        flags, records, body = flags | 0x0200, [], message[12:end + 4]
    return message[:2] + struct.pack('>HHHHH', flags, 1, len(records), 0, 0) + body


def serve_datagrams(table, address):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        message, client = server.recvfrom(2000)
        reply = answer(table, message, 512)
        if reply:
            server.sendto(reply, client)


class Stream(socketserver.StreamRequestHandler):
    def handle(self):
        while len(size := self.rfile.read(2)) == 2:
            reply = answer(self.server.table, self.rfile.read(struct.unpack('>H', size)[0]), 65535)
            self.wfile.write(struct.pack('>H', len(reply)) + reply)


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        address = self.connection.getsockname()[0].removeprefix('::ffff:')
        log('web', address, self.headers['Host'])
        body = ('reached ' + address + '\n').encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class WebServer(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


socketserver.ThreadingTCPServer.allow_reuse_address = True
for table, address in ((first, PUBLIC), (second, '45.45.45.3')):
    threading.Thread(target=serve_datagrams, args=(table, address), daemon=True).start()
    streams = socketserver.ThreadingTCPServer((address, 53), Stream)
    streams.table = table
    threading.Thread(target=streams.serve_forever, daemon=True).start()
web = WebServer(('::', 80), Web)
print('ready', flush=True)
web.serve_forever()
