import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from './clock.ts';
import { createEgress, type EgressOptions, type EgressRequest } from './egress.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that counts what connects to it. */
async function listen(host: string, port: number, handle: Handler) {
  const server = createServer(handle);
  const counted = { connections: 0, requests: new Array<string>() };
  server.on('connection', () => (counted.connections += 1));
  server.on('request', (request) => counted.requests.push(`${request.method} ${request.url}`));
  server.listen(port, host);
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
  const { port: bound } = server.address() as AddressInfo;
  return {
    port: bound,
    counted,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

/** A name server on the loopback; each question gets the next answer. */
async function serveNames(answers: readonly string[][]) {
  const socket = createSocket('udp4');
  let asked = 0;
  socket.on('message', (query, { port, address }) => {
    const addresses = answers[Math.min(asked, answers.length - 1)] ?? [];
    asked += 1;
    const header = Buffer.from(query.subarray(0, 12));
    for (const [at, value] of [0x8180, 1, addresses.length, 0, 0].entries()) header.writeUInt16BE(value, 2 + 2 * at);
    // The question, up to its type and class, then records of type A that point back to its name.
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const records = addresses.map((one) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...one.split('.').map(Number)]));
    socket.send(Buffer.concat([header, question, ...records]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    resolver,
    asked: () => asked,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => socket.close(() => resolve())),
  };
}

let site: Awaited<ReturnType<typeof listen>>;
let handler: Handler;
/** Must never be reached: what an attacker is after. */
let forbidden: Awaited<ReturnType<typeof listen>>;
let forbiddenV6: Awaited<ReturnType<typeof listen>>;
beforeAll(async () => {
  site = await listen('127.0.0.1', 0, (request, response) => handler(request, response));
  forbidden = await listen('127.0.0.2', 0, (_request, response) => response.end('internal'));
  forbiddenV6 = await listen('::1', forbidden.port, (_request, response) => response.end('internal'));
});
afterAll(async () => {
  await Promise.all([site.close(), forbidden.close(), forbiddenV6.close()]);
});
beforeEach(() => {
  handler = (_request, response) => response.end('hello');
});
afterEach(() => {
  expect(forbidden.counted.connections + forbiddenV6.counted.connections).toBe(0);
});

function setUp(over: Partial<EgressOptions> = {}) {
  const asked: string[] = [];
  const answers = new Map<string, string[]>([['site.example', ['127.0.0.1']]]);
  const egress = createEgress({
    clock: systemClock,
    ports: [80, 443, forbidden.port],
    allowAddresses: [`127.0.0.1:${site.port}`],
    resolve: async (hostname) => {
      asked.push(hostname);
      return answers.get(hostname) ?? [];
    },
    ...over,
  });
  const request = (over: Partial<EgressRequest> = {}) =>
    egress.request({ url: `http://site.example:${site.port}/`, maxBytes: 100_000, timeoutMs: 5000, signal: new AbortController().signal, ...over });
  return { request, asked, answers };
}

function hostileUrls(port: number): string[] {
  const at = `:${port}/`;
  const hosts = [
    // Spellings of the loopback, which the second listener answers.
    '127.0.0.2',
    '2130706434',
    '0x7f000002',
    '017700000002',
    '0177.0.0.2',
    '0x7f.0.0.2',
    '127.0.2',
    '127.2',
    '127.0.0.2.',
    '１２７.０.０.２',
    '127。0。0。2',
    '①②⑦.0.0.2',
    '127．0．0．2',
    '%31%32%37.0.0.2',
    '0177.0.0.02',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.2]',
    '[::ffff:7f00:2]',
    '[::127.0.0.2]',
    '[::7f00:2]',
    '[0000::1]',
    '[::ffff:0:127.0.0.2]',
    '0',
    '0.0.0.0',
    '000.000.000.000',
    '0x0',
    '[::]',
    // Metadata services.
    '169.254.169.254',
    '2852039166',
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    // Networks that are not the public one.
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.254',
    '192.168.0.1',
    '100.64.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '[fe80::1]',
    '[fc00::1]',
    '[fec0::1]',
    '[ff02::1]',
    '[2001:db8::1]',
    '[100::1]',
    // Transition forms.
    '[64:ff9b::127.0.0.2]',
    '[64:ff9b::7f00:2]',
    '[64:ff9b:1::7f00:2]',
    '[2002:7f00:2::]',
    '[2002:a9fe:a9fe::1]',
    '[2001:0:7f00:2::]',
    '[2001::1]',
    // Names that resolve there.
    'localhost',
    'localhost.',
    'LOCALHOST',
    'internal.example',
    'internal.example.',
    'metadata.example',
    'mixed.example',
    'mapped.example',
    'compatible.example',
    'zoned.example',
    'nowhere.example',
  ];
  return [
    ...hosts.map((host) => `http://${host}${at}`),
    `https://127.0.0.2${at}`,
    `http://user:pass@127.0.0.2${at}`,
    `http://site.example@127.0.0.2${at}`,
    `http://site.example:80@127.0.0.2${at}`,
    `http://127.0.0.2:${port}#@site.example/`,
    `http://127.0.0.2:${port}\\@site.example/`,
    `http:\\\\127.0.0.2${at}`,
    `http:/127.0.0.2${at}`,
    `http:127.0.0.2${at}`,
    `  http://127.0.0.2${at}`,
    `http://127.0.\t0.2${at}`,
    `ht\ntp://127.0.0.2${at}`,
    'http://127.0.0.2:0/',
    'http://127.0.0.2:22/',
    'http://127.0.0.2:25/',
    'http://127.0.0.2:6379/',
    'http://127.0.0.2:65536/',
    'http://[fe80::1%25eth0]/',
    'http://[::1',
    'http://',
    'http://a b/',
    '//127.0.0.2/',
    '/etc/passwd',
    '',
    'not a url',
    'file:///etc/passwd',
    'gopher://127.0.0.2:70/_x',
    'data:text/plain,hi',
    'ftp://127.0.0.2/',
    'javascript:alert(1)',
    'ws://127.0.0.2/',
    'blob:http://127.0.0.2/x',
    'about:blank',
    'unix:/var/run/docker.sock',
    'dict://127.0.0.2:11211/',
    'view-source:http://127.0.0.2/',
  ];
}

const resolved: [string, string[]][] = [
  ['localhost', ['127.0.0.2', '::1']],
  ['localhost.', ['127.0.0.2']],
  ['internal.example', ['127.0.0.2']],
  ['internal.example.', ['127.0.0.2']],
  ['metadata.example', ['169.254.169.254']],
  ['mixed.example', ['8.8.8.8', '127.0.0.2']],
  ['mapped.example', ['::ffff:127.0.0.2']],
  ['compatible.example', ['::7f00:2']],
  ['zoned.example', ['fe80::1%lo']],
  ['nowhere.example', []],
];

describe('outward requests', () => {
  it('reach only public addresses: the whole corpus makes no connection', async () => {
    const { request, answers } = setUp();
    for (const [name, addresses] of resolved) answers.set(name, addresses);
    const urls = hostileUrls(forbidden.port);
    expect(urls.length).toBeGreaterThanOrEqual(80);
    for (const url of urls) {
      const error: unknown = await request({ url }).then(
        () => expect.fail(`reached ${JSON.stringify(url)}`),
        (reason: unknown) => reason,
      );
      expect(['denied', 'invalid_params', 'unavailable'], `${JSON.stringify(url)}: ${String(error)}`).toContain((error as { code?: string }).code);
    }
    expect(forbidden.counted.connections).toBe(0);
  });

  it('reach only web ports, whatever the address', async () => {
    const { request, answers } = setUp({ ports: [80, 443] });
    // The last address is refused, so that nothing is dialled even if the port were let through.
    answers.set('mixed.example', ['8.8.8.8', '10.0.0.1']);
    for (const port of [0, 1, 22, 25, 6379, 8000, 65_535]) {
      await expect(request({ url: `http://mixed.example:${port}/` })).rejects.toMatchObject({
        code: 'denied',
        message: `Port ${port} is not allowed`,
      });
    }
  });

  it('reach nothing else through a redirect either', async () => {
    const { request, answers } = setUp();
    for (const [name, addresses] of resolved) answers.set(name, addresses);
    const statuses = [301, 302, 303, 307, 308];
    // A header cannot carry line breaks, and what is relative leads back to the site itself.
    const urls = hostileUrls(forbidden.port).filter((url) => /^[a-z]+:[\x21-\x7e]+$/.test(url) && !/^https?:(?!\/\/)/.test(url));
    expect(urls.length).toBeGreaterThanOrEqual(80);
    for (const [index, url] of urls.entries()) {
      let asked = 0;
      handler = (_request, response) => {
        asked += 1;
        response.writeHead(statuses[index % 5] ?? 302, { location: url }).end('x'.repeat(1000));
      };
      await expect(request({ method: index % 2 === 0 ? 'GET' : 'POST' }), url).rejects.toMatchObject({
        code: expect.stringMatching(/^(denied|invalid_params|unavailable)$/),
      });
      expect(asked).toBe(1);
    }
    expect(forbidden.counted.connections).toBe(0);
  });

  it('dial the address that was checked: a resolver that answers otherwise the second time is not asked again', async () => {
    let asked = 0;
    const { request } = setUp({
      resolve: async () => {
        asked += 1;
        return asked === 1 ? ['127.0.0.1'] : ['127.0.0.2'];
      },
    });
    expect((await request()).body.toString()).toBe('hello');
    expect(asked).toBe(1);
  });

  it('survive a name server that answers otherwise each time, with a TTL of 0: asked once per hop, and no answer with a private address is dialled', async () => {
    const cases: readonly (readonly [answers: string[][], hops: number, says: string, asked: number])[] = [
      [[['127.0.0.1'], ['127.0.0.2']], 0, 'hello', 1],
      [[['127.0.0.1'], ['127.0.0.2']], 1, 'denied', 2],
      [[['127.0.0.2'], ['127.0.0.1']], 0, 'denied', 1],
      [[['127.0.0.1', '127.0.0.2']], 0, 'denied', 1],
      [[['127.0.0.2', '127.0.0.1']], 0, 'denied', 1],
    ];
    for (const [answers, hops, says, asked] of cases) {
      await using names = await serveNames(answers);
      const { request } = setUp({ resolve: (hostname) => names.resolver.resolve4(hostname) });
      let left = hops;
      handler = (_request, response) => {
        left -= 1;
        if (left < 0) response.end('hello');
        else response.writeHead(302, { location: '/again' }).end();
      };
      const said = await request().then(
        ({ body }) => body.toString(),
        ({ code }: { code: string }) => code,
      );
      expect([answers, said, names.asked()]).toEqual([answers, says, asked]);
    }
  });

  it('check again at each hop: a name that moves between two hops is refused', async () => {
    let asked = 0;
    const { request } = setUp({
      resolve: async () => {
        asked += 1;
        return asked === 1 ? ['127.0.0.1'] : ['127.0.0.2'];
      },
    });
    handler = (_request, response) => response.writeHead(302, { location: '/again' }).end();
    await expect(request()).rejects.toMatchObject({ code: 'denied' });
    expect(asked).toBe(2);
  });

  it('keep the host name and try the next address when one does not answer', async () => {
    const { request, answers } = setUp({ allowAddresses: [`127.0.0.1:${site.port}`, `127.0.0.9:${site.port}`] });
    answers.set('site.example', ['127.0.0.9', '127.0.0.1']);
    handler = (incoming, response) => response.end(incoming.headers.host);
    expect((await request()).body.toString()).toBe(`site.example:${site.port}`);
  });

  it('follow three redirects but not a fourth', async () => {
    const { request } = setUp();
    let hops = 0;
    let length = 3;
    handler = (_request, response) => {
      if (hops === length) return response.end('there');
      hops += 1;
      response.writeHead(302, { location: `/hop${hops}` }).end();
    };
    const answer = await request();
    expect(answer.body.toString()).toBe('there');
    expect(answer.url).toBe(`http://site.example:${site.port}/hop3`);
    hops = 0;
    length = 10;
    await expect(request()).rejects.toMatchObject({ code: 'unavailable', message: 'More than 3 redirects' });
    expect(hops).toBe(4);
  });

  it('send headers and body to the first origin only', async () => {
    const { request, answers } = setUp();
    answers.set('other.example', ['127.0.0.1']);
    const seen: { host?: string; key?: string | string[]; auth?: string; method?: string; body: string }[] = [];
    handler = (incoming, response) => {
      let body = '';
      incoming.on('data', (chunk) => (body += chunk));
      incoming.on('end', () => {
        const { host, authorization, 'x-key': key } = incoming.headers;
        seen.push({
          body,
          ...(host !== undefined && { host }),
          ...(key !== undefined && { key }),
          ...(authorization !== undefined && { auth: authorization }),
          ...(incoming.method !== undefined && { method: incoming.method }),
        });
        if (incoming.url === '/') response.writeHead(307, { location: '/same' }).end();
        else if (incoming.url === '/same') response.writeHead(307, { location: `http://other.example:${site.port}/other` }).end();
        else response.end('done');
      });
    };
    await request({
      method: 'POST',
      body: 'payload',
      headers: { authorization: 'Bearer s', 'x-key': 'k', host: 'evil.example', 'Proxy-Authorization': 'x' },
    });
    const own = `site.example:${site.port}`;
    expect(seen).toEqual([
      { host: own, key: 'k', auth: 'Bearer s', method: 'POST', body: 'payload' },
      { host: own, key: 'k', auth: 'Bearer s', method: 'POST', body: 'payload' },
      { host: `other.example:${site.port}`, method: 'GET', body: '' },
    ]);
  });

  it('unpack gzip and brotli', async () => {
    const { request } = setUp();
    for (const [encoding, pack] of [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const) {
      handler = (_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(pack('packed text'));
      expect((await request()).body.toString()).toBe('packed text');
    }
    handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end(gzipSync(gzipSync('x')));
    await expect(request()).rejects.toMatchObject({ code: 'unavailable' });
    handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('this is not gzip');
    await expect(request()).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('truncate a body at the limit and report it', async () => {
    const { request } = setUp();
    handler = (_request, response) => response.end('0123456789');
    expect(await request({ maxBytes: 10 })).toMatchObject({ truncated: false });
    const cut = await request({ maxBytes: 4 });
    expect(cut.truncated).toBe(true);
    expect(cut.body.toString()).toBe('0123');
    handler = (_request, response) => {
      response.writeHead(200);
      const more = () => response.destroyed || (response.write('x'.repeat(65_536)), setImmediate(more));
      more();
    };
    expect((await request({ maxBytes: 200_000 })).body.length).toBe(200_000);
  });

  it('stop at a compression bomb', async () => {
    const { request } = setUp();
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    handler = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    await expect(request({ maxBytes: 100_000_000 })).rejects.toMatchObject({ code: 'payload_too_large' });
    expect((await request({ maxBytes: 1000 })).body.length).toBe(1000);
  });

  it('stop at the deadline, however slowly the bytes arrive', async () => {
    const { request } = setUp();
    handler = (_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 10);
      response.on('close', () => clearInterval(timer));
    };
    await expect(request({ timeoutMs: 150 })).rejects.toMatchObject({ code: 'timeout' });
    handler = () => {};
    await expect(request({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' });
    await expect(setUp({ resolve: () => new Promise(() => {}) }).request({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' });
  });

  it('stop when the caller aborts, and free the socket', async () => {
    const { request } = setUp();
    const controller = new AbortController();
    const closed = new Promise((resolve) => {
      handler = (incoming) => {
        incoming.socket.once('close', resolve);
        controller.abort();
      };
    });
    await expect(request({ signal: controller.signal })).rejects.toMatchObject({ code: 'cancelled' });
    await closed;
    await expect(request({ signal: controller.signal })).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('let the caller refuse the response by its headers, before the body is read', async () => {
    const { request } = setUp();
    handler = (_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4', 'set-cookie': ['a=1', 'b=2'] });
      response.write('x'.repeat(100_000));
    };
    await expect(
      request({
        accept: (head) => {
          expect(head).toMatchObject({ status: 200, headers: { 'content-type': 'video/mp4', 'set-cookie': 'a=1, b=2' } });
          throw new TypeError('no films');
        },
      }),
    ).rejects.toMatchObject({ code: 'unavailable', cause: { message: 'no films' } });
  });

  it('report a server that cuts the connection', async () => {
    const { request } = setUp();
    handler = (incoming) => incoming.socket.destroy();
    await expect(request()).rejects.toMatchObject({ code: 'unavailable' });
    handler = (incoming, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('part');
      setImmediate(() => incoming.socket.destroy());
    };
    await expect(request()).rejects.toMatchObject({ code: 'unavailable' });
  });
});
