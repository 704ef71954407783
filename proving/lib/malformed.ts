import type { Random } from './random.ts';

/** Makes the bytes of one connection. `token` opens every route, so that faults are not stopped by authentication. */
type Make = (random: Random, token: string) => Buffer;

const pick = <T>(random: Random, items: readonly T[]): T => items[random.int(items.length)] as T;
const noise = (random: Random, length: number): string => Array.from({ length }, () => String.fromCharCode(random.int(256))).join('');
const rpc = '{"jsonrpc":"2.0","id":1,"method":"system.ping"}';
const paths = [
  '/rpc',
  '/v1/models',
  '/v1/chat/completions',
  '/v1/responses',
  '/api/chat',
  '/api/chat/stream',
  '/media',
  '/media/x',
  '/mcp',
  '/health',
  '/',
  '/metrics',
  '/api/events',
  '/nothing',
];
const methods = ['GET', 'POST', 'DELETE', 'HEAD', 'PUT', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT', 'PURGE', 'PRI', 'get', 'M-SEARCH', 'GE T', ''];

interface Shape {
  readonly method?: string;
  readonly path?: string;
  readonly version?: string;
  readonly lines?: readonly string[];
  readonly body?: string;
  readonly eol?: string;
}

/** One request as a binary string (latin1). */
function request(token: string, shape: Shape): string {
  const eol = shape.eol ?? '\r\n';
  const first = `${shape.method ?? 'POST'} ${shape.path ?? '/rpc'} ${shape.version ?? 'HTTP/1.1'}`;
  const lines = [first, 'host: 127.0.0.1', `authorization: Bearer ${token}`, 'content-type: application/json', ...(shape.lines ?? [])];
  return `${lines.join(eol)}${eol}${eol}${shape.body ?? ''}`;
}

const latin =
  (make: (random: Random, token: string) => string): Make =>
  (random, token) =>
    Buffer.from(make(random, token), 'latin1');

/** Generators of bytes that are not a valid request. */
export const malformed: Readonly<Record<string, Make>> = {
  framing: latin((random, token) => {
    const length = `content-length: ${rpc.length}`;
    const lines = pick(random, [
      [length, 'transfer-encoding: chunked'],
      ['transfer-encoding: chunked', length],
      [length, length],
      [length, 'content-length: 5'],
      [`content-length: ${rpc.length}, ${rpc.length}`],
      ['content-length: -1'],
      ['content-length: +5'],
      ['content-length: 0x10'],
      ['content-length: 1e3'],
      ['content-length: 99999999999999999999999'],
      ['content-length: 9007199254740993'],
      ['content-length:'],
      ['transfer-encoding: chunked, identity'],
      ['transfer-encoding: identity, chunked'],
      ['transfer-encoding: xchunked'],
      ['transfer-encoding: chunked', 'transfer-encoding: chunked'],
      ['transfer-encoding: \u000bchunked'],
      ['transfer-encoding : chunked'],
      ['transfer-encoding: gzip, chunked'],
    ]);
    const body = random.int(2) === 0 ? rpc : `${rpc.length.toString(16)}\r\n${rpc}\r\n0\r\n\r\n`;
    return request(token, { lines, body, path: pick(random, paths) });
  }),
  'header lines': latin((random, token) => {
    const line = pick(random, [
      'x-folded: a\r\n b',
      'x-folded: a\r\n\tb: c',
      'x-bare: a\nx-next: b',
      'x-return: a\rb',
      'x-null: a\u0000b',
      'x space: a',
      'x-before : a',
      ': nameless',
      'no colon at all',
      ' x-leading: a',
      `x-${noise(random, 8)}: a`,
      `x-latin: ${noise(random, 40).replace(/[\r\n\0]/g, '?')}`,
      `x-long: ${'a'.repeat(17_000)}`,
      ...[3_000].map((count) => Array.from({ length: count }, (_, n) => `x-${n}: a`).join('\r\n')),
      'host: evil.example',
      'host:',
      `authorization: Bearer ${noise(random, 20).replace(/[\r\n\0]/g, '?')}`,
      'cookie: __proto__=x',
      '__proto__: x',
      'constructor: x',
      'expect: 200-ok',
      'expect: 100-continue',
      'connection: close, keep-alive, upgrade, x',
      'upgrade: h2c',
      'content-encoding: gzip',
      'content-type: text/plain; charset="',
      'content-type: application/json; charset=utf-7',
      'accept: ;;;,,,q=',
      'range: bytes=-,9999999999999999999-1',
      'if-none-match: "',
      'last-event-id: -1',
      'last-event-id: 1e400',
      `idempotency-key: ${'k'.repeat(300)}`,
      'traceparent: 00-00000000000000000000000000000000-0000000000000000-00',
      'x-request-id: ../../x',
      'x-forwarded-for: ,,,::::,999.1.1.1',
      'te: trailers, deflate;q=0.5',
    ]);
    return request(token, {
      method: pick(random, ['GET', 'POST']),
      path: pick(random, paths),
      lines: [line, `content-length: ${rpc.length}`],
      body: rpc,
      eol: random.int(8) === 0 ? '\n' : '\r\n',
    });
  }),
  'request line': latin((random, token) => {
    const path = pick(random, [
      ...paths,
      '/%',
      '/%zz',
      '/v1/models/%ff%fe',
      '/v1/models/%00',
      '/v1/models/../../health',
      '/media/%2e%2e%2fconfig.yaml',
      '/media/..%5c..%5c',
      '//health',
      '/health?ready=%',
      '/health#x',
      '*',
      'health',
      '127.0.0.1:80',
      'http://',
      'http://[::1',
      'http://127.0.0.1:99999999/health',
      'http://a b/health',
      'ftp://127.0.0.1/health',
      `/${'a'.repeat(17_000)}`,
      `/${'a/'.repeat(4_000)}`,
      `/v1/models?${'a=b&'.repeat(3_000)}`,
      `/\u0000`,
      `/${noise(random, 12)}`,
      '/ws?token=%ff',
    ]);
    const version = pick(random, [
      'HTTP/1.1',
      'HTTP/1.1',
      'HTTP/1.1',
      'HTTP/1.0',
      'HTTP/0.9',
      'HTTP/2.0',
      'HTTP/9.9',
      'HTTP/1.',
      'HTTPS/1.1',
      'http/1.1',
      '',
    ]);
    return request(token, { method: pick(random, methods), path, version });
  }),
  chunks: latin((random, token) => {
    const body = pick(random, [
      'zz\r\nab\r\n0\r\n\r\n',
      '-1\r\na\r\n0\r\n\r\n',
      'ffffffffffffffffff\r\na',
      '7fffffffffffffff\r\na',
      '5\r\nabc\r\n0\r\n\r\n',
      '3\r\nabcde\r\n0\r\n\r\n',
      '3 \r\nabc\r\n0\r\n\r\n',
      '0x3\r\nabc\r\n0\r\n\r\n',
      '3\nabc\n0\n\n',
      `3;${'x'.repeat(20_000)}\r\nabc\r\n0\r\n\r\n`,
      `${`1;a=b\r\n{\r\n`.repeat(2_000)}0\r\n\r\n`,
      '3;a="\r\nabc\r\n0\r\n\r\n',
      '0\r\ncontent-length: 5\r\nhost: evil\r\n\r\n',
      `0\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
      '0\r\n bad\r\n\r\n',
      '\r\n\r\n',
      `${'1\r\n[\r\n'.repeat(500)}0\r\n\r\n`,
      `${rpc.length.toString(16)}\r\n${rpc}\r\n0\r\n\r\n${noise(random, 30)}`,
      `10000000\r\n${'a'.repeat(1_000)}`,
    ]);
    return request(token, { path: pick(random, paths), lines: ['transfer-encoding: chunked'], body });
  }),
  'no HTTP': latin((random) =>
    pick(random, [
      '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
      'SSH-2.0-OpenSSH_9.9\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'EHLO localhost\r\n',
      '*1\r\n$4\r\nPING\r\n',
      '\u0000',
      '\r\n\r\n\r\n',
      '\n'.repeat(5_000),
      '{"jsonrpc":"2.0"}',
      noise(random, 1 + random.int(2_000)),
    ]),
  ),
  pipelines: latin((random, token) => {
    const ping = request(token, { lines: [`content-length: ${rpc.length}`], body: rpc });
    const read = request(token, { method: 'GET', path: '/v1/models' });
    return pick(random, [
      ping.repeat(50),
      `${ping}${noise(random, 200)}`,
      `${read}${ping}${ping.slice(0, random.int(ping.length))}`,
      `${request(token, { method: 'GET', path: '/health', lines: [`content-length: ${read.length}`], body: read })}`,
      `${request(token, { method: 'GET', path: '/health' })}GET /health HTTP/1.1\r\n\r\n${read}`,
      `${request(token, { lines: ['content-length: 3'], body: rpc })}`,
      `${request(token, { lines: ['expect: 100-continue', `content-length: ${rpc.length}`], body: rpc })}${ping}`,
      `\r\n\r\n${ping}`,
      `${read}\r\n\r\n${read}`,
    ]);
  }),
  'damaged requests': (random, token) => {
    const body = pick(random, [rpc, '{"model":"local/test-model","messages":[{"role":"user","content":"x"}]}', '{"message":"x"}', '']);
    const path = pick(random, paths);
    const bytes = [...Buffer.from(request(token, { path, lines: [`content-length: ${body.length}`], body }), 'latin1')];
    for (let changes = 1 + random.int(6); changes > 0; changes -= 1) {
      const at = random.int(bytes.length);
      if (random.int(3) === 0) bytes.splice(at, 1 + random.int(8));
      else if (random.int(2) === 0) bytes.splice(at, 0, ...bytes.slice(at, at + random.int(20)));
      else bytes[at] = (bytes[at] ?? 0) ^ (1 << random.int(8));
    }
    return Buffer.from(bytes);
  },
  'bodies that are not valid JSON': latin((random, token) => {
    const type = pick(random, [
      'application/json',
      'text/plain',
      'multipart/form-data; boundary=b',
      'multipart/form-data',
      'application/x-www-form-urlencoded',
      'image/png',
      ';',
    ]);
    const body = pick(random, [
      noise(random, random.int(3_000)),
      '--b\r\ncontent-disposition: form-data; name="file"; filename="../../x"\r\n\r\ndata\r\n--b--',
      '--b\r\ncontent-disposition: form-data; name="other"\r\n\r\nx\r\n--b\r\n',
      '--b\r\n\r\n--b--',
      `--b\r\n${'x: y\r\n'.repeat(500)}\r\n`,
      `${'--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n'.repeat(100)}--b--`,
      '\u00ef\u00bb\u00bf{}',
      '{"a":"\u00ff"}',
      '[',
      'null',
      '"',
      '1e999',
    ]);
    const lines = [`content-type: ${type}`, `content-length: ${body.length}`];
    return request(token, { path: pick(random, paths), lines, body }).replace('content-type: application/json\r\n', '');
  }),
  handshakes: latin((random, token) => {
    const key = pick(random, [
      'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-key: short',
      'sec-websocket-key:',
      'x-none: 1',
      'sec-websocket-key: a\r\nsec-websocket-key: b',
    ]);
    const version = pick(random, ['13', '8', '0', 'x', '']);
    const more = pick(random, [
      'sec-websocket-extensions: permessage-deflate; server_max_window_bits=99',
      'sec-websocket-extensions: ;;;="',
      `sec-websocket-protocol: ${noise(random, 10).replace(/[\r\n\0]/g, ' ')}`,
      'sec-websocket-protocol: bearer., a, a',
      'transfer-encoding: chunked',
      'content-length: 5',
      'x-none: 1',
    ]);
    const upgrade = pick(random, ['websocket', 'WebSocket', 'h2c', 'websocket, h2c', '']);
    return request(token, {
      method: pick(random, ['GET', 'GET', 'POST', 'HEAD']),
      path: pick(random, ['/ws', '/ws', '/ws?token=%', '/rpc', '/ws/']),
      lines: ['connection: Upgrade', `upgrade: ${upgrade}`, `sec-websocket-version: ${version}`, key, more],
      body: noise(random, random.int(40)),
    });
  }),
};
