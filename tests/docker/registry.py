"""A registry with one image of one layer: as much of one as an engine asks for when it fetches it.

registry.py LAYER.tar: prints its port and the image's digest, and serves `base` on the loopback until it is ended.
What is served: https://distribution.github.io/distribution/spec/api/ (GET and HEAD of manifests and blobs).
"""
import gzip
import hashlib
import http.server
import json
import sys

MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'


def digest(data):
    return 'sha256:' + hashlib.sha256(data).hexdigest()


with open(sys.argv[1], 'rb') as file:
    plain = file.read()
layer = gzip.compress(plain, 1)
config = json.dumps({
    'architecture': 'amd64',
    'os': 'linux',
    'config': {'Env': ['PATH=/usr/local/bin:/bin']},
    'rootfs': {'type': 'layers', 'diff_ids': [digest(plain)]},
}).encode()
manifest = json.dumps({
    'schemaVersion': 2,
    'mediaType': MANIFEST,
    'config': {
        'mediaType': 'application/vnd.docker.container.image.v1+json',
        'size': len(config),
        'digest': digest(config),
    },
    'layers': [{
        'mediaType': 'application/vnd.docker.image.rootfs.diff.tar.gzip',
        'size': len(layer),
        'digest': digest(layer),
    }],
}).encode()
blobs = {digest(data): data for data in (config, layer)}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self, with_body):
        kind, data, status = 'application/json', b'{}', 200
        if self.path == '/v2/base/manifests/' + digest(manifest):
            kind, data = MANIFEST, manifest
        elif self.path.startswith('/v2/base/blobs/') and self.path.rsplit('/', 1)[1] in blobs:
            kind, data = 'application/octet-stream', blobs[self.path.rsplit('/', 1)[1]]
        elif self.path != '/v2/':
            status = 404
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(data)))
        self.send_header('Docker-Content-Digest', digest(data))
        self.end_headers()
        if with_body:
            self.wfile.write(data)

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], digest(manifest), flush=True)
server.serve_forever()
