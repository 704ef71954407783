import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Product, startProduct } from './product.ts';

/** A daemon with something to see on each page of the dashboard. */
export interface FilledProduct {
  readonly product: Product;
  /** A conversation that was compacted several times. */
  readonly longRef: string;
  /** A running graph whose gate is pending. */
  readonly graphId: string;
  /** The folder of a knowledge source; the caller removes it. */
  readonly folder: string;
}

const usage = { input: 412, output: 96, cacheRead: 256 };
const explanation = [
  'A **gateway** sits between clients and the services behind them. For agents it does three things:\n\n',
  '1. *Authenticates* each caller and checks what it may do\n2. *Orders* turns, so that one conversation never runs twice at once\n3. *Records* what was used, and what it cost\n\n',
  'A turn over HTTP is one request:\n\n```sh\ncurl http://127.0.0.1:4766/api/chat \\\n  -H "authorization: Bearer $TOKEN" \\\n  -d \'{"message": "What is a gateway?"}\'\n```\n\n',
  '| Route | Protocol |\n| --- | --- |\n| `/v1` | chat completions, responses |\n| `/rpc`, `/ws` | JSON-RPC 2.0 |\n| `/api/chat/stream` | events, as the answer is written |\n',
];
const answers: Readonly<Record<string, string | readonly string[]>> = {
  'What does a gateway do?': explanation,
  'Plan the move of the build machine': 'Three steps: copy the caches, switch the name, watch the first ten builds.',
  'Summarise the release notes of this week': 'Two fixes in the event stream, one in the cache of prompts. Nothing breaks.',
  'Which agents were busy yesterday?': '`scout` did 41 turns, `default` 12.',
};

async function fill(product: Product): Promise<void> {
  await product.call('agents.create', {
    agentId: 'scout',
    config: {
      name: 'Scout',
      model: 'local/test-model',
      fallbackModels: ['local/test-model'],
      maxSteps: 40,
      instructions: 'Look things up before you answer.',
    },
  });
  await product.call('agents.create', { agentId: 'night-shift', config: { name: 'Night shift', model: 'local/test-model', maxSteps: 20 } });
  await product.call('agents.suspend', { agentId: 'night-shift' });
  await product.call('tokens.create', { id: 'ci', scopes: ['rpc'], expiresAt: Date.now() + 30 * 86_400_000 });
  await product.call('tokens.create', { id: 'editor-plugin', scopes: ['api'] });
  await product.call('tokens.create', { id: 'laptop', scopes: ['admin'], expiresAt: Date.now() + 90 * 86_400_000 });
  for (const [at, message] of Object.keys(answers).toReversed().entries())
    await product.call('agent.execute', { message, sessionKey: `ada:desk-${at}`, agentId: at % 2 === 0 ? 'scout' : 'default' });
}

const moves = ['the caches', 'the name', 'the first ten builds', 'the old machine', 'the backups', 'the night watch'];
const memories: readonly { readonly content: string; readonly memoryType: string; readonly tags: readonly string[]; readonly trustLevel?: string }[] =
  [
    { content: 'The backup of the build machine runs at four in the morning.', memoryType: 'semantic', tags: ['build', 'backup'] },
    { content: 'Deployments happen on Tuesdays and Thursdays, never on a Friday.', memoryType: 'procedural', tags: ['release'] },
    { content: 'The move of the build machine was postponed once, because a disk was late.', memoryType: 'episodic', tags: ['build'] },
    { content: 'A vendor page claims that its caches never need a backup.', memoryType: 'semantic', tags: ['backup'], trustLevel: 'external' },
  ];

/** Fills the pages on memory, context and spend. */
async function fillMemory(product: Product): Promise<string> {
  for (const memory of memories) await product.call('memory.store', memory);
  let conversationRef = '';
  for (const [at, part] of [...moves, ...moves, ...moves].entries()) {
    const message = `How do we move ${part}? ${`Last time ${part} took longer than planned. `.repeat(6)}`;
    ({ conversationRef } = (await product.call('agent.execute', { message, sessionKey: 'ada:move' })) as { conversationRef: string });
    if (at % 3 === 2) await product.call('session.compact', { conversationRef });
  }
  for (const part of moves.slice(0, 3)) await product.call('agent.execute', { message: `And ${part}, are we done with it?`, sessionKey: 'ada:move' });
  return conversationRef;
}

export const watching = 'Watch the first ten builds and report which are slow.';
const planFile = '# The move\n\n1. Copy the caches\n2. Switch the name\n3. Watch the first ten builds\n';

const handbook: Readonly<Record<string, string>> = {
  'move.md': '# The move\n\nThe caches are copied first. The name is switched when the first ten builds are green.\n',
  'backups/build-machine.md': '# Backup\n\nThe backup of the build machine runs at four in the morning and takes twenty minutes.\n',
};

/** Fills the pages on knowledge and files, and records a browser; returns the folder of the source. */
async function fillFiles(product: Product): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'gatehouse-handbook-'));
  for (const [path, text] of Object.entries(handbook)) {
    await mkdir(join(place, path, '..'), { recursive: true });
    await writeFile(join(place, path), text);
  }
  const knowledge = { sources: [{ name: 'handbook', folder: place, trusted: true }] };
  await product.call('agents.update', { agentId: 'scout', config: { knowledge } });
  for (const [name, text] of Object.entries({ 'plan.md': planFile, 'builds.csv': 'build,minutes\n1,12\n2,11\n' }))
    await fetch(`${product.url}/media?fileName=${name}`, { method: 'POST', headers: { authorization: `Bearer ${product.token}` }, body: text });
  await product.call('browser.open', { agentId: 'scout', url: 'about:blank' });
  const shop = `<title>Order</title><style>body{font:18px sans-serif;margin:3em}input,button{font:inherit;margin:.4em 0;padding:.4em;display:block}</style>
<h1>Order disks</h1><label>Amount <input></label><label>Name <input></label><button>Order</button>`;
  await product.call('browser.act', { agentId: 'scout', request: { kind: 'evaluate', expression: `document.write(${JSON.stringify(shop)})` } });
  const { refs } = (await product.call('browser.snapshot', { agentId: 'scout' })) as { refs: Record<string, { name?: string }> };
  const ref = (name: string) => Object.keys(refs).find((one) => refs[one]?.name === name);
  await product.call('browser.act', { agentId: 'scout', request: { kind: 'type', ref: ref('Amount'), text: '4' } });
  await product.call('browser.act', { agentId: 'scout', request: { kind: 'type', ref: ref('Name'), text: 'Build machine' } });
  await product.call('browser.act', { agentId: 'scout', request: { kind: 'click', ref: ref('Order') } });
  return place;
}

/** Fills the pages of an agent and of approvals; the calls wait until the product ends. */
async function fillAgentPages(product: Product): Promise<void> {
  await product.call('workspace.init', { agentId: 'scout' });
  await product.call('workspace.writeFile', { agentId: 'scout', filePath: 'documents/move.md', content: planFile });
  await product.call('workspace.git.commit', { agentId: 'scout', message: 'The plan of the move' });
  await product.call('workspace.writeFile', { agentId: 'scout', filePath: 'documents/move.md', content: `${planFile}4. Switch the old one off\n` });
  await product.call('skills.create', {
    name: 'release-notes',
    agentId: 'scout',
    content: '---\nname: release-notes\ndescription: Writes release notes from a list of commits.\n---\nGroup the commits by kind.\n',
  });
}

/** Fills the pages on unattended work. */
async function fillSchedule(product: Product): Promise<void> {
  const zone = 'Europe/Berlin';
  const add = (name: string, schedule: object, message: string) =>
    product.call('cron.add', { name, agentId: 'scout', schedule, payload: { kind: 'agent_turn', message } });
  await add('morning report', { kind: 'cron', expr: '0 8 * * *', tz: zone }, 'What is due today, and what waits since yesterday?');
  await add('look at the queue', { kind: 'every', everyMs: 2_700_000 }, 'Is anything stuck?');
  await add('switch the old machine off', { kind: 'in', seconds: 40_000 }, 'Remind me to switch the old build machine off');
  const sessionKey = 'ada:inbox';
  const { conversationRef } = (await product.call('agent.execute', { message: 'Report here', agentId: 'scout', sessionKey })) as {
    conversationRef: string;
  };
  const partition = { kind: 'principal-key', principalId: 'token:env', sessionKey };
  await product.call('cron.add', {
    name: 'tea',
    agentId: 'scout',
    schedule: { kind: 'cron', expr: '0 16 * * 1-5', tz: zone },
    payload: { kind: 'delivery', text: 'Tea time. **Ten builds** were green since the switch of the name.' },
    deliveryTarget: {
      conversation: { conversationScope: { tenantId: 'default', agentId: 'scout', partition }, conversationRef },
      destinationEndpoint: { channelType: 'gateway', channelInstanceId: 'gateway', conversationId: 'inbox', conversationKind: 'direct' },
    },
  });
  await product.call('cron.run', { jobName: 'tea', agentId: 'scout' });
  const sender = { login: 'ada' };
  const payload = { action: 'opened', issue: { title: 'The caches are cold', number: 12 }, repository: { full_name: 'ada/engine' }, sender };
  await product.call('webhooks.test', { mapping: 'github', payload, headers: { 'x-github-event': 'issues' }, run: true });
}

const tideAnswers = [
  '**Yes, within limits.** A barrage turns twice a day, whatever the weather.\n\n- predictable for years ahead\n- costly to build, cheap to run',
  'Against it speaks what the silt does to the turbines, and to those who live from the mud.',
];

/** Fills the pages on delegation; the last builds are watched until the product ends. Returns the graph whose gate is pending. */
async function fillDelegation(product: Product): Promise<string> {
  const nodes = [
    { node_id: 'research', task: 'Collect what is known about ${TOPIC}.', agent: 'scout' },
    { node_id: 'figures', task: 'Collect the figures on ${TOPIC}.', agent: 'scout' },
    {
      node_id: 'debate',
      task: 'Is ${TOPIC} worth it? {{research.result}}',
      type_id: 'debate',
      type_config: { agents: ['scout', 'default'], rounds: 1, synthesizer: 'default' },
      depends_on: ['research', 'figures'],
    },
    { node_id: 'vote', task: 'Build it?', type_id: 'vote', type_config: { voters: ['scout', 'default'] }, depends_on: ['figures'] },
    {
      node_id: 'approval',
      task: 'Shall the report be written?',
      type_id: 'approval-gate',
      type_config: { timeout_minutes: 60 },
      depends_on: ['debate', 'vote'],
    },
    { node_id: 'report', task: 'Write the report: {{debate.result}}', agent: 'default', depends_on: ['approval', 'debate'] },
  ];
  const settings = { on_failure: 'continue', budget: { maxTokens: 200_000 } };
  await product.call('graph.save', { label: 'Research with a vote', nodes, settings });
  const announce = { announceChannelType: 'gateway', announceChannelId: 'inbox' };
  const label = 'Tidal power';
  const { graphId } = (await product.call('graph.execute', { nodes, settings, label, variables: { TOPIC: 'tidal power' }, ...announce })) as {
    graphId: string;
  };
  await product.call('session.spawn', { task: watching, agent: 'scout', maxSteps: 20 });
  return graphId;
}

/** Makes a turn whose call waits for an approval, and does not wait for it. */
export function askToWrite(product: Product, sessionKey: string): void {
  const call = {
    id: 'call-1',
    name: 'write',
    arguments: JSON.stringify({ path: 'documents/move.md', content: `${planFile}4. Switch the old one off\n` }),
  };
  product.provider.queue({ toolCalls: [call], usage });
  product.call('agent.execute', { message: 'Add the last step to the plan', agentId: 'scout', sessionKey }).catch(() => undefined);
}

function newestQuestion(body: unknown): string {
  const text = JSON.stringify(body);
  return Object.keys(answers).find((question) => text.includes(question)) ?? '';
}

function delegationAnswer(body: unknown): string | undefined {
  const text = JSON.stringify(body);
  return text.includes('tidal power') ? tideAnswers[text.length % tideAnswers.length] : undefined;
}

export async function startFilledProduct(): Promise<FilledProduct> {
  const product = await startProduct({
    provider: {
      answer: ({ path, body }) =>
        path.endsWith('/chat/completions')
          ? {
              text:
                answers[newestQuestion(body)] ??
                delegationAnswer(body) ??
                'First the copy, then the switch of the name; ten builds are watched before the old one is removed.',
              usage,
              hang: JSON.stringify(body).includes(watching),
            }
          : undefined,
    },
    config: {
      agents: { default: { name: 'Gate', model: 'local/test-model', budgets: { perHourTokens: 60_000, perDayUsd: 0.05 } } },
      embedding: { provider: 'hashing' },
      browser: { enabled: true },
      approvals: { rules: [{ tools: ['write'], action: 'ask' }] },
      webhooks: {
        token: 'a-token-of-at-least-thirty-two-characters',
        presets: ['github'],
        mappings: [{ id: 'build', match: { path: 'build' }, messageTemplate: 'Build {{number}} of {{repo}}' }],
      },
    },
  });
  const longRef = await fillMemory(product);
  await fill(product);
  await fillAgentPages(product);
  await fillSchedule(product);
  const folder = await fillFiles(product);
  return { product, longRef, folder, graphId: await fillDelegation(product) };
}
