import { createHash } from 'node:crypto';
import type { Client } from '@gatehouse/client';
import { GatehouseError } from '@gatehouse/client';
import type { Bundle, ImportedAgent, ImportedMemory } from './bundle.ts';

type StepKind = 'provider' | 'secret' | 'agent' | 'file' | 'skill' | 'memories' | 'job';

/** One thing that an import brings. */
export interface Step {
  readonly kind: StepKind;
  readonly what: string;
  readonly from: string;
  /** What differs from the source. */
  readonly changes: readonly string[];
  /** `take`: it is not here yet; `same`: it is here; `kept`: something else is here under its name, and stays. */
  readonly state: 'take' | 'same' | 'kept';
  /** Brings it, by the public methods alone. Calls are repeated when they come too fast. */
  readonly run: (call: Client['call']) => Promise<void>;
}

interface Here {
  readonly agents: ReadonlySet<string>;
  readonly defaultId: string;
  readonly providers: ReadonlySet<string>;
  readonly secrets: ReadonlySet<string>;
}

const memoryPage = 500;

/** Compares what an import brings with what is here. Reads only. */
export async function planImport(bundle: Bundle, call: Client['call']): Promise<Step[]> {
  const here: Here = {
    agents: new Set((await call('agents.list')).agents),
    defaultId: await defaultAgent(call),
    providers: new Set((await call('providers.list')).providers.map(({ provider }) => provider)),
    secrets: new Set((await call('env.list', { limit: 500 })).secrets.map(({ name }) => name)),
  };
  const steps: Step[] = [
    ...bundle.providers.map(({ settings, from }): Step => ({
      kind: 'provider',
      what: settings.id,
      from,
      changes: settings.key === undefined ? [] : ['its key goes to the secret store'],
      state: here.providers.has(settings.id) ? 'kept' : 'take',
      run: async (send) => void (await send('providers.set', settings)),
    })),
    ...bundle.secrets.map(({ name, value, from }): Step => ({
      kind: 'secret',
      what: name,
      from,
      changes: [],
      state: here.secrets.has(name) ? 'kept' : 'take',
      run: async (send) =>
        void (await send('env.set', {
          key: name,
          value,
          description: `Imported from ${bundle.product}`,
        })),
    })),
  ];
  for (const agent of bundle.agents) steps.push(...(await planAgent(agent, bundle, here, call)));
  return steps;
}

/** The agent that is asked when none is named. */
async function defaultAgent(call: Client['call']): Promise<string> {
  for (const agentId of (await call('agents.list')).agents) if ((await call('agents.get', { agentId })).isDefault) return agentId;
  return 'default';
}

async function planAgent(agent: ImportedAgent, { product }: Bundle, { agents, defaultId }: Here, call: Client['call']): Promise<Step[]> {
  const agentId = agent.config === undefined ? defaultId : agent.id;
  const isHere = agents.has(agentId);
  const { config } = agent;
  const steps: Step[] = [];
  if (config !== undefined)
    steps.push({
      kind: 'agent',
      what: agentId,
      from: agent.from,
      changes: agent.changes,
      state: isHere ? 'kept' : 'take',
      run: async (send) => void (await send('agents.create', { agentId, config })),
    });
  const untouched = new Set(
    isHere
      ? (await call('workspace.status', { agentId })).files.filter((file) => file.untouched === true || !file.present).map(({ name }) => name)
      : [],
  );
  for (const { path, content, from } of agent.files) {
    const isFree = !isHere || [...untouched].some((name) => name === path);
    const isSame = !isFree && (await call('workspace.readFile', { agentId, filePath: path })).content === content;
    steps.push({
      kind: 'file',
      what: `${agentId}/${path}`,
      from,
      changes: [],
      state: isFree ? 'take' : isSame ? 'same' : 'kept',
      run: async (send) => {
        await send('workspace.init', { agentId });
        await send('workspace.writeFile', { agentId, filePath: path, content });
      },
    });
  }
  const installed = new Set(isHere ? (await call('skills.list', { agentId })).skills.map(({ name }) => name) : []);
  for (const { name, files, from, changes } of agent.skills)
    steps.push({
      kind: 'skill',
      what: `${agentId}/${name}`,
      from,
      changes,
      state: installed.has(name) ? 'kept' : 'take',
      run: async (send) => void (await send('skills.upload', { agentId, name, files: [...files] })),
    });
  steps.push(...(await planMemories(agent.memories, agentId, product, isHere, call)));
  const named = new Set(isHere ? (await call('cron.list', { agentId })).jobs.map(({ name }) => name) : []);
  for (const { name, schedule, payload, from, changes } of agent.jobs)
    steps.push({
      kind: 'job',
      what: `${agentId}/${name}`,
      from,
      changes,
      state: named.has(name) ? 'kept' : 'take',
      run: async (send) => void (await send('cron.add', { agentId, name, schedule, payload })),
    });
  return steps;
}

/** Each memory has a tag made of its content, by which a repeated import finds it. */
async function planMemories(
  memories: readonly ImportedMemory[],
  agentId: string,
  product: string,
  isHere: boolean,
  call: Client['call'],
): Promise<Step[]> {
  const source = `import:${product}`;
  const stored = new Set<string>();
  for (let offset = 0; isHere && memories.length > 0; offset += memoryPage) {
    const { entries, hasMore } = await call('memory.browse', {
      agentId,
      tags: [source],
      offset,
      limit: memoryPage,
    });
    for (const { tags } of entries) for (const tag of tags) stored.add(tag);
    if (!hasMore) break;
  }
  const byFile = Map.groupBy(memories, ({ from }) => from);
  return [...byFile].map(([from, group]): Step => {
    const tagged = new Map(group.map((memory) => [tagOf(memory.content), memory]));
    const missing = [...tagged].filter(([tag]) => !stored.has(tag));
    return {
      kind: 'memories',
      what: `${agentId}: ${missing.length === 0 ? tagged.size : missing.length}`,
      from,
      changes: ['as text from outside: see docs/guide/import.md'],
      state: missing.length === 0 ? 'same' : 'take',
      async run(send) {
        const refused: string[] = [];
        for (const [tag, { content, memoryType }] of missing) {
          try {
            await send('memory.store', {
              agentId,
              content,
              memoryType,
              trustLevel: 'external',
              tags: [source, tag],
            });
          } catch (error) {
            // Text that asks for a destructive command.
            if (!(error instanceof GatehouseError) || error.code !== 'denied') throw error;
            refused.push(error.message);
          }
        }
        if (refused.length > 0) throw new Error(`${refused.length} of ${missing.length} were refused: ${refused[0]}`);
      },
    };
  });
}

function tagOf(content: string): string {
  return `import-id:${createHash('sha256').update(content).digest('hex').slice(0, 24)}`;
}
