"""A systemd that starts no scope: owns org.freedesktop.systemd1 on the bus at argv[1], takes StartTransientUnit apart by
the D-Bus specification, prints what it was asked as JSON and answers as systemd does, with the job's result argv[2].
Written from the specification, apart from the client that it tests."""
import json, os, socket, struct, sys

bus = socket.socket(socket.AF_UNIX)
bus.connect(sys.argv[1])
bus.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
line = b""
while not line.endswith(b"\r\n"):
    line += bus.recv(1)
assert line.startswith(b"OK "), line
bus.sendall(b"BEGIN\r\n")


def exactly(size):
    data = b""
    while len(data) < size:
        part = bus.recv(size - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def string(text):
    return struct.pack("<I", len(text)) + text.encode() + b"\0"


def send(kind, serial, fields, signature="", body=b""):
    array = b""
    for code, type_, value in fields + ([(8, "g", signature)] if signature else []):
        array = pad(array, 8) + bytes([code]) + bytes([len(type_)]) + type_.encode() + b"\0"
        if type_ == "u":
            array = pad(array, 4) + struct.pack("<I", value)
        elif type_ == "g":
            array += bytes([len(value)]) + value.encode() + b"\0"
        else:
            array = pad(array, 4) + string(value)
    head = struct.pack("<BBBBII", ord("l"), kind, 0, 1, len(body), serial) + struct.pack("<I", len(array)) + array
    bus.sendall(pad(head, 8) + body)


class Value:
    def __init__(self, data):
        self.data, self.at = data, 0

    def align(self, to):
        self.at += -self.at % to

    def take(self, size):
        assert self.at + size <= len(self.data), "runs over its end"
        self.at += size
        return self.data[self.at - size:self.at]

    def one(self, type_):
        """One complete type of the signature, and what is left of it."""
        code, rest = type_[0], type_[1:]
        if code == "u":
            self.align(4)
            return struct.unpack("<I", self.take(4))[0], rest
        if code == "b":
            value, _ = self.one("u" + rest)
            assert value in (0, 1)
            return bool(value), rest
        if code in "so":
            size, _ = self.one("u")
            text = self.take(size + 1)
            assert text[-1] == 0
            return text[:-1].decode(), rest
        if code == "g":
            text = self.take(self.take(1)[0] + 1)
            return text[:-1].decode(), rest
        if code == "v":
            signature, _ = self.one("g")
            value, left = self.one(signature)
            assert left == ""
            return value, rest
        if code == "(":
            self.align(8)
            out = []
            while rest[0] != ")":
                value, rest = self.one(rest)
                out.append(value)
            return out, rest[1:]
        if code == "a":
            size, _ = self.one("u")
            self.align(8 if rest[0] in "({" else 4)
            end, out, left = self.at + size, [], rest
            while self.at < end:
                value, left = self.one(rest)
                out.append(value)
            assert self.at == end
            if not out:  # the type is passed over all the same
                left = skip(rest)
            return out, left
        raise AssertionError(code)


def skip(type_):
    if type_[0] == "a":
        return skip(type_[1:])
    if type_[0] != "(":
        return type_[1:]
    rest = type_[1:]
    while rest[0] != ")":
        rest = skip(rest)
    return rest[1:]


def receive():
    head = exactly(16)
    order, kind, _, version, size, serial, length = struct.unpack("<BBBBIII", head)
    assert order == ord("l") and version == 1
    rest = exactly((length + 7) // 8 * 8)
    fields, value = {}, Value(head + rest[:length])
    value.at = 16
    while value.at < 16 + length:
        value.align(8)
        code = value.take(1)[0]
        fields[code], _ = value.one("v")
    return kind, serial, fields, exactly(size)


BUS = [(1, "o", "/org/freedesktop/DBus"), (2, "s", "org.freedesktop.DBus"), (6, "s", "org.freedesktop.DBus")]
send(1, 1, BUS + [(3, "s", "Hello")])
send(1, 2, BUS + [(3, "s", "RequestName")], "su", pad(string("org.freedesktop.systemd1"), 4) + struct.pack("<I", 0))
serial = 2
while True:
    kind, asked, fields, body = receive()
    if kind == 2 and fields.get(5) == 2:
        print("ready", flush=True)
    if kind != 1:
        continue
    serial += 1
    back = [(6, "s", fields[7]), (5, "u", asked)]
    if fields[3] != "StartTransientUnit":
        send(2, serial, back)
        continue
    value, rest = Value(body), fields[8]
    name, rest = value.one(rest)
    mode, rest = value.one(rest)
    properties, rest = value.one(rest)
    units, rest = value.one(rest)
    assert rest == "" and value.at == len(body)
    print(json.dumps({"name": name, "mode": mode, "properties": dict(properties), "units": units}), flush=True)
    if sys.argv[2] == "refuse":
        send(3, serial, back + [(4, "s", "org.freedesktop.systemd1.UnitExists")], "s", string("it is there already"))
        continue
    send(2, serial, back, "o", string("/job/7"))
    # First that of another job, which is nobody's here.
    for job, result in (("/job/6", "failed"), ("/job/7", sys.argv[2])):
        serial += 1
        signal = pad(struct.pack("<I", 7) + string(job), 4)
        signal = pad(signal + string(name), 4) + string(result)
        send(4, serial, [(1, "o", "/org/freedesktop/systemd1"), (2, "s", "org.freedesktop.systemd1.Manager"),
                         (3, "s", "JobRemoved")], "uoss", signal)
