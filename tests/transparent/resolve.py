# Asks the guest's resolver by hand. usage: resolve.py udp|tcp SERVER NAME TYPE; says the response code and the bytes of the
# last four, in hexadecimal, of an answer that has records.
import socket
import struct
import sys

way, server, name, kind = sys.argv[1:]
labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.')) + b'\0'
query = struct.pack('>HHHHHH', 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack('>HH', int(kind), 1)
family = socket.AF_INET6 if ':' in server else socket.AF_INET
asker = socket.socket(family, socket.SOCK_STREAM if way == 'tcp' else socket.SOCK_DGRAM)
asker.settimeout(20)
asker.connect((server, 53))
if way == 'tcp':
    asker.sendall(struct.pack('>H', len(query)) + query)
    stream = asker.makefile('rb')
    answer = stream.read(struct.unpack('>H', stream.read(2))[0])
else:
    asker.send(query)
    answer = asker.recv(600)
code, records = answer[3] & 15, struct.unpack('>H', answer[6:8])[0]
print(code, answer[-4:].hex() if records else 'nothing')
