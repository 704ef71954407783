import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import { WebSocket } from 'ws';
import { type Daemon, operatorToken, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';

/** R31: of the wrong secrets that one address tries, ten a minute are answered 401 and the others 429, over every route and in every form; the right one always works. */
export interface R31Report {
  readonly guesses: number;
  readonly byRoute: Readonly<Record<string, number>>;
  /** Wrong secrets of each guesser that were answered 401. */
  readonly answered: Readonly<Record<string, number>>;
  /** Unexpected outcomes, each in one line. */
  readonly wrong: readonly string[];
}

const perMinute = 10;
/** A proxy that the daemon trusts: its claims about addresses count, in any spelling. */
const proxy = '127.0.0.2';

/** Guessers, each with one address, and the forms in which it appears. */
interface Guesser {
  readonly localAddress: string;
  readonly forwardedFor: (random: Random) => string | undefined;
  /** Another address, whose own ten are untouched. */
  readonly other: { readonly localAddress: string; readonly forwardedFor?: string };
}

const pick = <T>(random: Random, items: readonly T[]): T => items[random.int(items.length)] as T;
const octets = (random: Random) => Array.from({ length: 4 }, () => random.int(256)).join('.');

const guessers: Readonly<Record<string, Guesser>> = {
  'one address that forges X-Forwarded-For': {
    localAddress: '127.0.0.3',
    forwardedFor: (random) => pick(random, [undefined, '127.0.0.1', '::1', octets(random), `${octets(random)}, ${octets(random)}`, 'unknown', '']),
    other: { localAddress: '127.0.0.4' },
  },
  'IPv4 behind a trusted proxy, plain and mapped': {
    localAddress: proxy,
    // All but the last were written by the client itself.
    forwardedFor: (random) =>
      `${pick(random, ['', `${octets(random)}, `, '127.0.0.1, '])}${pick(random, ['203.0.113.7', '::ffff:203.0.113.7', '::FFFF:cb00:7107', '0:0:0:0:0:ffff:cb00:7107', ' 203.0.113.7 '])}`,
    other: { localAddress: proxy, forwardedFor: '203.0.113.8' },
  },
  'IPv6 behind a trusted proxy, all over its /64': {
    localAddress: proxy,
    forwardedFor: (random) => `2001:db8:7:1:${Array.from({ length: 4 }, () => random.int(65_536).toString(16)).join(':')}`,
    other: { localAddress: proxy, forwardedFor: '2001:db8:7:2::1' },
  },
};

/** Routes that take a secret; each resolves with whether the secret was checked and found wrong. */
const routes: Readonly<Record<string, (guess: Guess) => Promise<'wrong' | 'refused' | 'in'>>> = {
  '/v1 header': (guess) => over(guess, { path: '/v1/models', headers: bearer(guess.secret) }),
  '/rpc header': (guess) => over(guess, { path: '/rpc', headers: bearer(guess.secret), body: { jsonrpc: '2.0', id: 1, method: 'system.ping' } }),
  '/rpc with more fields': (guess) =>
    over(guess, {
      path: '/rpc?deviceToken=x',
      headers: {
        ...bearer(guess.secret),
        'x-device-token': 'x',
        'x-real-ip': '10.0.0.9',
        forwarded: 'for=10.0.0.9',
        'x-api-key': guess.secret,
        cookie: 'session=x',
      },
      body: { jsonrpc: '2.0', id: 1, method: 'system.ping', params: { deviceToken: 'x', token: guess.secret }, deviceToken: 'x' },
    }),
  '/api header': (guess) => over(guess, { path: '/api/agents', headers: bearer(guess.secret) }),
  'path that is none': (guess) => over(guess, { path: '/nothing', headers: bearer(guess.secret) }),
  '/ws header': (guess) => socket(guess, '/ws', { headers: bearer(guess.secret) }),
  '/ws query': (guess) => socket(guess, `/ws?token=${guess.secret}`, {}),
  '/ws subprotocol': (guess) => socket(guess, '/ws', { protocols: [`bearer.${guess.secret}`, 'jsonrpc'] }),
};

interface Guess {
  readonly port: number;
  readonly secret: string;
  readonly localAddress: string;
  readonly forwardedFor: string | undefined;
  /** A kept connection; a new one otherwise. */
  readonly agent?: Agent;
}

const forwarded = (guess: Guess) => (guess.forwardedFor === undefined ? {} : { 'x-forwarded-for': guess.forwardedFor });

async function over(
  guess: Guess,
  request: { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body?: object },
): Promise<'wrong' | 'refused' | 'in'> {
  const { port, localAddress, agent } = guess;
  const reply = await http({
    port,
    localAddress,
    ...request,
    headers: { ...request.headers, ...forwarded(guess) },
    ...(agent !== undefined && { agent }),
  });
  if (reply.status === 429) return 'refused';
  return reply.status === 401 || (reply.status === 404 && request.path === '/nothing') ? 'wrong' : 'in';
}

function socket(
  guess: Guess,
  path: string,
  how: { readonly headers?: Readonly<Record<string, string>>; readonly protocols?: string[] },
): Promise<'wrong' | 'refused' | 'in'> {
  return new Promise((resolve, reject) => {
    const client = new WebSocket(`ws://127.0.0.1:${guess.port}${path}`, how.protocols ?? [], {
      headers: { ...how.headers, ...forwarded(guess) },
      localAddress: guess.localAddress,
      perMessageDeflate: false,
    });
    client.on('unexpected-response', (request, response) => {
      request.destroy();
      if (response.statusCode === 429) resolve('refused');
      else reject(new Error(`the handshake was answered with ${response.statusCode}`));
    });
    client.on('error', reject);
    client.on('close', (code) => resolve(code === 4001 ? 'wrong' : 'in'));
    client.on('open', () =>
      client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'system.ping' }), () => {
        client.on('message', () => client.close());
      }),
    );
  });
}

export async function proveGuessing(options: {
  /** Number of guesses of each guesser. */
  readonly guesses: number;
  readonly seed: number;
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}): Promise<R31Report> {
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig('http://127.0.0.1:9/v1', { gateway: { trustedProxies: [proxy] } }));
  let daemon: Daemon | undefined;
  const kept = new Agent({ keepAlive: true });
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const random = randomFrom(options.seed);
    const wrong: string[] = [];
    const byRoute: Record<string, number> = {};
    const answered: Record<string, number> = {};
    let guesses = 0;
    for (const [name, guesser] of Object.entries(guessers)) {
      const begun = performance.now();
      const guess = (secret: string): Guess => ({
        port,
        secret,
        localAddress: guesser.localAddress,
        forwardedFor: guesser.forwardedFor(random),
        ...(random.int(2) === 0 && { agent: kept }),
      });
      let found = 0;
      for (let n = 0; n < options.guesses; n += 1) {
        const route = pick(random, Object.keys(routes));
        byRoute[route] = (byRoute[route] ?? 0) + 1;
        guesses += 1;
        // Of the right length, and different only at the end.
        const secret = pick(random, [`${operatorToken.slice(0, -8)}${String(n).padStart(8, '0')}`, `guess-${n}-${'x'.repeat(40)}`, 'short']);
        const outcome = await (routes[route] as (typeof routes)[string])(guess(secret));
        if (outcome === 'in') wrong.push(`${name}: a wrong secret came in at ${route}`);
        if (outcome === 'wrong') found += 1;
      }
      answered[name] = found;
      for (const [route, knock] of Object.entries(routes)) {
        const outcome = await knock(guess(operatorToken));
        if (outcome !== 'in' && route !== 'path that is none')
          wrong.push(`${name}: after too many wrong ones the right secret was ${outcome} at ${route}`);
        const other = await knock({
          port,
          secret: operatorToken,
          localAddress: guesser.other.localAddress,
          forwardedFor: guesser.other.forwardedFor,
        });
        if (other !== 'in' && route !== 'path that is none') wrong.push(`${name}: another address was ${other} at ${route}`);
      }
      const minutes = Math.ceil((performance.now() - begun) / 60_000);
      if (found > perMinute * minutes) wrong.push(`${name}: ${found} wrong secrets were answered as such in ${minutes} minutes`);
    }
    options.progress?.(`R31: ${guesses} guesses, answered ${Object.values(answered).join(', ')}; ${wrong.length} wrong`);
    return { guesses, byRoute, answered, wrong };
  } finally {
    kept.destroy();
    await daemon?.kill();
    await removeHome(home);
  }
}
