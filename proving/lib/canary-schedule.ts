import { createHmac } from 'node:crypto';
import * as z from 'zod';
import type { Canaries, Scanner } from './canaries.ts';
import { bellsOf } from './bells.ts';
import { printTo, sayTo, type Target } from './canary-transports.ts';
import { pause } from './daemon.ts';
import { http } from './http.ts';
import { rpcCall } from './rpc.ts';

/** A file that rightly holds a secret that was written into it. */
export const checklistFile = 'workspaces/default/HEARTBEAT.md';

/** The webhook settings into which R27 puts secrets. */
export function configOfSchedule(canaries: Canaries) {
  const token = canaries.make('the token of the webhooks');
  const own = canaries.make('the secret of a mapping');
  const signing = canaries.known(
    'the secret of a mapping with signed ids',
    `whsec_${Buffer.from(canaries.make('the same, decoded')).toString('base64')}`,
  );
  return {
    webhooks: {
      token,
      mappings: [
        { id: 'shared', match: { path: 'shared' }, messageTemplate: 'Build {{build}}' },
        { id: 'own', match: { path: 'own' }, secret: own, messageTemplate: 'Build {{build}}' },
        { id: 'signed', match: { path: 'signed' }, secret: signing, replay: 'signed', messageTemplate: 'Build {{build}}' },
        { id: 'ring', match: { path: 'ring' }, action: 'wake', messageTemplate: 'It rings: {{build}}' },
      ],
    },
  };
}

export type CanarySchedule = ReturnType<typeof configOfSchedule>;

const Deliveries = z.object({ deliveries: z.array(z.object({ deliveryId: z.string(), state: z.string(), mapping: z.string() })) });
const Runs = z.object({ runs: z.array(z.object({ status: z.string() })) });
const running: readonly string[] = ['accepted', 'running', 'started'];

/** Sends webhooks, runs jobs behind a wake gate, lets heartbeats report, and scans everything that is listed and printed of it. */
export async function useSchedule(
  target: Target,
  { webhooks }: CanarySchedule,
  {
    canaries,
    key,
    home,
    scan,
    unprovoked,
  }: {
    readonly canaries: Canaries;
    /** A live key. */
    readonly key: string;
    readonly home: string;
    readonly scan: Scanner['scan'];
    readonly unprovoked: string[];
  },
): Promise<void> {
  const say = sayTo(target, scan);
  const hex = (secret: string, body: string) => createHmac('sha256', secret).update(body).digest('hex');
  const send = async (path: string, secret: string, fake = false): Promise<void> => {
    const body = JSON.stringify({ build: `${path}-${fake ? 'forged' : 'honest'}` });
    // Proxies and senders add secrets along with the signature.
    const headers = {
      'x-webhook-signature': fake ? hex(`not ${secret}`, body) : hex(secret, body),
      authorization: `Bearer ${canaries.make(`a header of a webhook (${path}, ${fake})`)}`,
      cookie: `session=${canaries.make(`a cookie of a webhook (${path}, ${fake})`)}`,
    };
    const { status, text, headers: answered } = await http({ port: target.port, agent: target.agent, path: `/hooks/${path}`, body, headers });
    scan('answers to webhooks', text + JSON.stringify(answered));
    if ((status === 200) === fake) unprovoked.push(`the webhook ${path} was answered with ${status}: ${text.slice(0, 200)}`);
  };
  const own = webhooks.mappings.find(({ id }) => id === 'own')?.secret ?? '';
  await send('shared', webhooks.token);
  await send('own', own);
  await send('own', own, true);
  await say('heartbeat.update', { agentId: 'default', enabled: true, intervalMs: 86_400_000, prompt: 'Look after the garden.' });
  // Other files of a workspace that are part of a model's prompt.
  await say('workspace.writeFile', { agentId: 'default', filePath: 'HEARTBEAT.md', content: `- Water it. The key of the shed is ${key}.\n` });
  await send('ring', webhooks.token);
  await say('heartbeat.trigger', { agentId: 'default' });

  const bell = await bellsOf(target, 'token:env');
  const schedule = { kind: 'every', everyMs: 86_400_000 };
  // What a script finds around it; there should be nothing.
  const around = `const found = JSON.stringify([globalThis.process?.env, globalThis.Deno?.env, Object.getOwnPropertyNames(globalThis)]);`;
  const print = `${around} console.log(JSON.stringify({ wake: false, deliver: 'Found ' + found }))`;
  const wake = `${around} console.log(JSON.stringify({ wake: true, context: 'Found ' + found }))`;
  const jobs: readonly (readonly [name: string, more: object])[] = [
    ['printed by a gate', { payload: { kind: 'agent_turn', message: 'Go' }, wakeGate: { script: print, language: 'js', timeoutSeconds: 10 } }],
    ['woken by a gate', { payload: { kind: 'agent_turn', message: 'Go' }, wakeGate: { script: wake, language: 'js', timeoutSeconds: 10 } }],
    ['text', { payload: { kind: 'delivery', text: 'It is time' } }],
    ['tools', { payload: { kind: 'agent_turn', message: 'Please use your tools' } }],
  ];
  for (const [name, more] of jobs) {
    await say('cron.add', { ...bell(name, schedule), ...more });
    await say('cron.run', { jobName: name });
  }
  for (const until = performance.now() + 20_000; performance.now() < until; await pause(50)) {
    const { deliveries } = Deliveries.parse(await rpcCall(target, 'webhooks.deliveries', {}));
    const runs = await Promise.all(
      jobs.map(async ([jobName]) => Runs.parse(await rpcCall(target, 'cron.runs', { jobName })).runs[0]?.status ?? 'started'),
    );
    if (![...deliveries.map(({ state }) => state), ...runs].some((state) => running.includes(state))) break;
  }
  const { deliveries } = Deliveries.parse(await rpcCall(target, 'webhooks.deliveries', {}));
  if (deliveries.length !== 3) unprovoked.push(`${deliveries.length} webhooks were taken`);
  for (const [name] of jobs) if (!(await say('cron.runs', { jobName: name })).includes('"status"')) unprovoked.push(`the job "${name}" did not run`);
  if (!(await say('inbox.list')).includes('Found ')) unprovoked.push('no wake gate has printed anything');
  await say('webhooks.replay', { deliveryId: deliveries.at(-1)?.deliveryId });
  await say('webhooks.test', { mapping: 'own', payload: { build: 'a test' }, run: true });
  for (const method of ['webhooks.list', 'webhooks.deliveries', 'cron.list', 'inbox.list', 'heartbeat.states', 'scheduler.status', 'config.read'])
    await say(method);
  await say('heartbeat.get', { agentId: 'default' });
  const command = printTo(target, home, scan, unprovoked);
  for (const words of [['webhooks', 'list'], ['webhooks', 'deliveries'], ['cron', 'list'], ['inbox'], ['heartbeat'], ['status']]) command(words);
}
