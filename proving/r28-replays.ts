import { createHmac, randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { type Daemon, pause, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { http } from './lib/http.ts';
import { askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R28: a captured webhook that is sent again, in any disguise, starts no second turn, or is reported where nothing
 * signed distinguishes it from a new one; and nothing without a signature by the secret is ever accepted.
 */
export interface R28Report {
  readonly seed: number;
  readonly honest: number;
  readonly replays: number;
  readonly forgeries: number;
  /** Replays that started a turn although the mode of the mapping detects them, or that were not answered like the first. */
  readonly executed: readonly string[];
  /** Replays that started a turn, as their mode permits, without a warning. */
  readonly unalarmed: readonly string[];
  /** Forgeries that were not answered with 401, or that left a delivery. */
  readonly accepted: readonly string[];
}

const secret = 'secret-of-the-webhooks-of-the-proving-suite';
const signing = Buffer.from('another-secret-for-standard-webhooks');
export const modes = ['exact', 'body', 'signed'] as const;
export type Mode = (typeof modes)[number];

/** A mapping for each mode. */
export const replayMappings = modes.map((mode) => ({
  id: mode,
  match: { path: mode },
  replay: mode,
  messageTemplate: '{{text}}',
  secret: mode === 'signed' ? `whsec_${signing.toString('base64')}` : secret,
}));

type Headers = Record<string, string>;
export interface Shot {
  readonly path: string;
  readonly body: string;
  readonly headers: Headers;
}

/** A replay, and whether its mapping may accept it as a new delivery. */
interface Replay extends Shot {
  readonly name: string;
  readonly counts: boolean;
}

const hex = (text: string, key: string | Buffer = secret) => createHmac('sha256', key).update(text).digest('hex');
const seconds = (agoSec = 0) => String(Math.floor(Date.now() / 1000) - agoSec);

export function sign(mode: Mode, body: string, random: Random): Headers {
  if (mode !== 'signed') {
    const named: Headers = random.int(2) === 0 ? { 'x-github-delivery': randomBytes(8).toString('hex') } : { 'x-webhook-timestamp': seconds(1) };
    return { 'x-webhook-signature': hex(body), ...named };
  }
  const [id, at] = [`msg_${randomBytes(8).toString('hex')}`, seconds(1)];
  const signature = createHmac('sha256', signing).update(`${id}.${at}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': `v1,${signature}` };
}

/**
 * Replays that are possible for a client that saw the request and has no secret. Their fresh timestamp lies `aheadSec` in the future, so
 * that those of one request differ even when they are made within a second.
 */
export function replaysOf(mode: Mode, { path, body, headers }: Shot, aheadSec = 0): Replay[] {
  const plain = headers['x-webhook-signature'];
  const again = (name: string, changed: Headers = {}, counts = false, at = path): Replay => ({
    name,
    path: at,
    body,
    headers: { ...headers, ...changed },
    counts,
  });
  // Unsigned headers can be renewed; only the mode `exact` uses them, and an id rather than a time.
  const freshCounts = mode === 'exact';
  const dressed =
    plain === undefined
      ? [again('a second signature', { 'webhook-signature': `v1,${'A'.repeat(43)}= ${headers['webhook-signature']}` })]
      : [
          again('upper case', { 'x-webhook-signature': plain.toUpperCase() }),
          again('prefix', { 'x-webhook-signature': `sha256=${plain}` }),
          again('spaces', { 'x-webhook-signature': `  ${plain}  ` }),
        ];
  const isNamed = headers['x-github-delivery'] !== undefined;
  return [
    again('identical'),
    again('another spelling of the path', {}, false, `/hooks//${mode.toUpperCase()}/`),
    again('query', {}, false, `${path}?again=1`),
    again('further headers', { 'x-request-id': randomBytes(4).toString('hex'), 'x-forwarded-for': '192.0.2.1' }),
    ...dressed,
    ...(mode === 'signed' ? [] : [again('fresh timestamp', { 'x-webhook-timestamp': seconds(-aheadSec) }, freshCounts && !isNamed)]),
    again('fresh id', { 'x-github-delivery': randomBytes(8).toString('hex') }, freshCounts),
  ];
}

/** Forgeries without the secret; each must be refused. */
export function forge(mode: Mode, { path, body, headers }: Shot, random: Random): Shot & { readonly name: string } {
  const name = mode === 'signed' ? 'webhook-signature' : 'x-webhook-signature';
  const right = headers[name] ?? '';
  const with_ = (kind: string, value: string | undefined, other = body, more: Headers = {}) => {
    const { [name]: _, ...rest } = headers;
    return { name: kind, path, body: other, headers: { ...rest, ...more, ...(value !== undefined && { [name]: value }) } };
  };
  const at = random.int(right.length - 4) + 3;
  const flipped = `${right.slice(0, at)}${right[at] === 'a' ? 'b' : 'a'}${right.slice(at + 1)}`;
  const standard = (id: string, time: string, key: Buffer) => `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`;
  const options = [
    () =>
      with_(
        'a byte of the body',
        right,
        body.replace(/.(?=..$)/, (character) => (character === 'x' ? 'y' : 'x')),
      ),
    () => with_('a space more', right, `${body} `),
    () => with_('a character of the signature', flipped),
    () => with_('no signature', undefined),
    () => with_('an empty signature', ''),
    () => with_('half of it', right.slice(0, right.length >> 1)),
    () => with_('twice the signature', `${right},${right}`),
    () => with_('random', mode === 'signed' ? `v1,${randomBytes(32).toString('base64')}` : randomBytes(32).toString('hex')),
    () =>
      with_(
        'of another secret',
        mode === 'signed' ? standard(headers['webhook-id'] ?? '', headers['webhook-timestamp'] ?? '', randomBytes(32)) : hex(body, 'guess'),
      ),
    () => with_('another hash', `sha1=${createHmac('sha1', secret).update(body).digest('hex')}`),
    () => with_('the bare hash of the body', mode === 'signed' ? `v1,${hex(body)}` : hex(body, '')),
    ...(mode === 'signed'
      ? [
          () => with_('a renewed timestamp', right, body, { 'webhook-timestamp': seconds() }),
          () => with_('a new id', right, body, { 'webhook-id': `msg_${randomBytes(4).toString('hex')}` }),
          () => with_('the plain scheme', undefined, body, { 'x-webhook-signature': hex(body) }),
        ]
      : [
          () => with_('stale', right, body, { 'x-webhook-timestamp': seconds(301 + random.int(1_000_000)) }),
          () => with_('from the future', right, body, { 'x-webhook-timestamp': seconds(-302 - random.int(1_000_000)) }),
          () => with_('a timestamp that is none', right, body, { 'x-webhook-timestamp': ['1e99', '123abc', '-1', '0x1', ' '][random.int(5)] ?? '' }),
        ]),
  ];
  return (options[random.int(options.length)] ?? options[0])?.() ?? with_('no signature', undefined);
}

const Page = z.object({ deliveries: z.array(z.object({ deliveryId: z.string(), message: z.string() })), hasMore: z.boolean() });

export async function proveReplays(options: {
  readonly honest: number;
  readonly forgeries: number;
  readonly seed: number;
  readonly broken?: string;
}): Promise<R28Report> {
  const random = randomFrom(options.seed);
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, { ...proofConfig(provider.url), webhooks: { token: secret, mappings: replayMappings } });
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  let daemon: Daemon | undefined;
  try {
    daemon = await startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
    const { token } = daemon;
    const send = async ({ path, body, headers }: Shot): Promise<number> => (await http({ port, path, body, headers, agent })).status;
    const warned = (): number => daemon?.stderr().split('Webhook repeats the body of an earlier one').length ?? 0;
    const executed: string[] = [];
    const unalarmed: string[] = [];
    const expected = new Map<string, number>();
    const shots: { readonly mode: Mode; readonly shot: Shot }[] = [];
    let replays = 0;
    for (let index = 0; index < options.honest; index += 1) {
      const mode = modes[index % modes.length] ?? 'exact';
      const text = askWith(nonceOf([mode, index]));
      const body = JSON.stringify({ text });
      const shot = { path: `/hooks/${mode}`, body, headers: sign(mode, body, random) };
      if ((await send(shot)) !== 200) executed.push(`${mode}: an honest delivery was refused`);
      shots.push({ mode, shot });
      let turns = 1;
      for (const replay of replaysOf(mode, shot)) {
        const before = warned();
        const statuses = await Promise.all([send(replay), send(replay)]);
        replays += 2;
        if (statuses.some((status) => status !== 200)) executed.push(`${mode}, ${replay.name}: answered with ${statuses.join()}`);
        if (!replay.counts) continue;
        turns += 1;
        // The line may follow a little after the answer.
        for (const until = performance.now() + 2_000; warned() === before && performance.now() < until;) await pause(10);
        if (warned() === before) unalarmed.push(`${mode}, ${replay.name}`);
      }
      expected.set(text, turns);
    }
    const accepted: string[] = [];
    for (let done = 0; done < options.forgeries;) {
      const batch = Array.from({ length: Math.min(16, options.forgeries - done) }, () => {
        const { mode, shot } = shots[random.int(shots.length)] ?? { mode: 'exact' as const, shot: { path: '/hooks/exact', body: '{}', headers: {} } };
        return forge(mode, shot, random);
      });
      const statuses = await Promise.all(batch.map(send));
      for (const [index, status] of statuses.entries()) if (status !== 401) accepted.push(`${batch[index]?.path} ${batch[index]?.name}: ${status}`);
      done += batch.length;
    }
    const found = new Map<string, number>();
    for (const { message } of await listAll({ port, token })) found.set(message, (found.get(message) ?? 0) + 1);
    for (const [text, turns] of expected) if (found.get(text) !== turns) executed.push(`${text}: ${found.get(text) ?? 0} turns instead of ${turns}`);
    for (const text of found.keys()) if (!expected.has(text)) accepted.push(`an unsigned delivery "${text}"`);
    return { seed: options.seed, honest: shots.length, replays, forgeries: options.forgeries, executed, unalarmed, accepted };
  } finally {
    agent.destroy();
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

async function listAll(target: { readonly port: number; readonly token: string }) {
  const rows: z.output<typeof Page>['deliveries'] = [];
  for (;;) {
    const before = rows.at(-1)?.deliveryId;
    const page = Page.parse(await rpcCall(target, 'webhooks.deliveries', { limit: 200, ...(before !== undefined && { before }) }));
    rows.push(...page.deliveries);
    if (!page.hasMore) return rows;
  }
}
