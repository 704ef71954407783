import { homedir } from 'node:os';
import type { Bundle, ImportedAgent, ImportedJob, ImportedMemory, ImportedProvider, ImportedSecret, Left } from './bundle.ts';
import {
  addVariables,
  at,
  durationMs,
  isValues,
  listOf,
  parseVariables,
  providerType,
  readMemoryFiles,
  readPromptFiles,
  readSkills,
  textOf,
  toName,
  type Values,
} from './parts.ts';
import type { SourceFolder } from './source-folder.ts';
import { CliError } from '../failure.ts';

const configFile = 'openclaw.json';
/** Sections that have no counterpart, each with what to do instead. */
const sectionsLeft: Readonly<Record<string, string>> = {
  channels: 'channels to chat programs are not there yet',
  hooks: 'webhooks are configured differently: see docs/guide/schedule.md',
  mcp: 'MCP servers run in a jail and need their folders: see docs/guide/mcp.md',
  session: 'conversations are kept differently; they are not imported',
  tools: 'tools and their approvals have other names: see docs/guide/agents.md',
  gateway: 'address and tokens of the gateway stay as they are here',
  plugins: 'there are no plugins',
  browser: 'the browser is configured differently: see docs/guide/browser.md',
};

/** Reads a folder of OpenClaw (`~/.openclaw`). */
export async function readOpenClaw(source: SourceFolder, nowMs: number): Promise<Bundle> {
  const config = await source.json(configFile);
  if (config === undefined)
    throw new CliError(`${source.root} has no ${configFile}.`, {
      hint: 'Expected the folder of OpenClaw, usually ~/.openclaw.',
    });
  if (!isValues(config)) throw new CliError(`${configFile}:1:1: expected an object.`);
  const left: Left[] = [];
  for (const [section, reason] of Object.entries(sectionsLeft))
    if (section in config) left.push({ what: `section ${section}`, from: `${configFile}: ${section}`, reason });
  const agents = await readAgents(source, config, left);
  const { vars, shellEnv: _unused, ...plain } = at(config, 'env');
  const configured = [...Object.entries(plain), ...Object.entries(at(vars))];
  const variables = parseVariables((await source.text('.env')) ?? '');
  const keys = { providers: readProviders(config, new Map([...variables, ...configured]), left), secrets: [] as ImportedSecret[], left };
  addVariables(configured, `${configFile}: env`, keys);
  addVariables(variables, '.env', keys);
  await readAuthProfiles(source, keys);
  const { jobs, defaultJobs } = await readJobs(source, config, left, nowMs);
  for (const owner of jobs.keys())
    if (!agents.some(({ id }) => id === owner))
      left.push({
        what: `jobs of agent ${owner}`,
        from: 'cron',
        reason: 'the agent is not in the configuration',
      });
  return {
    product: 'openclaw',
    agents: agents.map((agent, index) => ({
      ...agent,
      jobs: [...(index === 0 ? defaultJobs : []), ...(jobs.get(agent.id) ?? [])],
    })),
    providers: keys.providers,
    secrets: keys.secrets,
    left,
  };
}

async function readAgents(source: SourceFolder, config: Values, left: Left[]): Promise<ImportedAgent[]> {
  const defaults = { ...at(config, 'agent'), ...at(config, 'agents', 'defaults') };
  const listed = listOf(at(config, 'agents')['list']).filter(isValues);
  // The default agent first.
  const entries = (listed.length === 0 ? [{ id: 'main', identity: config['identity'] }] : listed).toSorted(
    (a, b) => Number(b['default'] === true) - Number(a['default'] === true),
  );
  const agents: ImportedAgent[] = [];
  for (const [index, entry] of entries.entries()) {
    const given = textOf(entry['id']) ?? `agent-${index + 1}`;
    const id = toName(given, 'agent');
    const changes = id === given ? [] : [`renamed from "${given}"`];
    const workspace = workspaceOf(source, entry, defaults, index === 0, given, left);
    const memories: ImportedMemory[] = workspace === undefined ? [] : await readMemoryFiles(source, workspace);
    const skills = workspace === undefined ? [] : await readSkills(source, `${workspace}/skills`, left);
    agents.push({
      id,
      from: listed.length === 0 ? `${configFile}: agent` : `${configFile}: agents.list`,
      config: {
        name: textOf(at(entry, 'identity')['name']) ?? textOf(entry['name']) ?? given,
        ...modelsOf(entry['model'] ?? defaults['model']),
        ...heartbeatOf(entry['heartbeat'] ?? defaults['heartbeat'], changes),
      },
      changes,
      files: workspace === undefined ? [] : await readPromptFiles(source, workspace, left),
      skills: index === 0 ? [...skills, ...(await readSkills(source, 'skills', left))] : skills,
      memories,
      jobs: [],
    });
  }
  return agents;
}

/** Returns the folder of an agent's workspace below the source. */
function workspaceOf(source: SourceFolder, entry: Values, defaults: Values, isDefault: boolean, id: string, left: Left[]): string | undefined {
  const given =
    textOf(entry['workspace']) ?? (isDefault ? textOf(defaults['workspace']) : undefined) ?? (isDefault ? 'workspace' : `workspace-${id}`);
  const path = given.replace(/^~\/\.openclaw(?=\/)/, source.root).replace(/^~(?=\/)/, homedir());
  const local = source.inside(path);
  if (local !== undefined) return local;
  left.push({
    what: `workspace of agent ${id}`,
    from: given,
    reason: `it is outside of ${source.root}: copy it to workspace-${id} there and set its path`,
  });
  return undefined;
}

function modelsOf(model: unknown): { model?: string; fallbackModels?: string[] } {
  const primary = textOf(model) ?? textOf(at(model)['primary']);
  const fallbacks = listOf(at(model)['fallbacks']).filter((each): each is string => textOf(each) !== undefined);
  return {
    ...(primary !== undefined && { model: primary }),
    ...(fallbacks.length > 0 && { fallbackModels: fallbacks.slice(0, 8) }),
  };
}

function heartbeatOf(given: unknown, changes: string[]): { heartbeat?: NonNullable<ImportedAgent['config']>['heartbeat'] } {
  const every = textOf(at(given)['every']);
  const ms = every === undefined ? undefined : durationMs(every);
  if (ms === undefined || ms === 0) return {};
  const intervalMs = Math.min(Math.max(ms, 60_000), 604_800_000);
  if (intervalMs !== ms) changes.push(`heartbeat every ${every} becomes ${intervalMs / 60_000} minutes`);
  const { start, end, timezone } = at(given, 'activeHours');
  const hours =
    textOf(start) !== undefined && textOf(end) !== undefined && /^\d\d:\d\d$/.test(`${start as string}`) && /^\d\d:\d\d$/.test(`${end as string}`);
  const model = textOf(at(given)['model']);
  return {
    heartbeat: {
      enabled: true,
      intervalMs,
      ...(model !== undefined && { model }),
      ...(hours && {
        activeHours: {
          start: `${start as string}`,
          end: `${end as string}`,
          ...(textOf(timezone) !== undefined && { timeZone: `${timezone as string}` }),
        },
      }),
    },
  };
}

function readProviders(config: Values, variables: ReadonlyMap<string, unknown>, left: Left[]): ImportedProvider[] {
  return Object.entries(at(config, 'models', 'providers')).flatMap(([id, value]): ImportedProvider[] => {
    const from = `${configFile}: models.providers.${id}`;
    const baseUrl = textOf(at(value)['baseUrl']);
    const written = textOf(at(value)['apiKey']);
    const reference = /^\$(?:(\w+)|\{(\w+)\})$/.exec(written ?? '');
    const key = reference === null ? written : textOf(variables.get(reference[1] ?? reference[2] ?? ''));
    const type = providerType(id) ?? (textOf(at(value)['api'])?.startsWith('anthropic') === true ? 'anthropic' : 'openai-compatible');
    if (type === 'openai-compatible' && baseUrl === undefined) {
      left.push({ what: `provider ${id}`, from, reason: 'it has no baseUrl' });
      return [];
    }
    if (reference !== null && key === undefined)
      left.push({
        what: `key of provider ${id}`,
        from,
        reason: `it refers to ${written}: set it with \`gatehouse secrets set\``,
      });
    const models = listOf(at(value)['models']).flatMap((model) => {
      const { id: modelId, contextWindow, maxTokens } = at(model);
      return textOf(modelId) === undefined
        ? []
        : [
            {
              id: `${modelId as string}`,
              ...(isCount(contextWindow, 512) && { contextWindow }),
              ...(isCount(maxTokens, 1) && { maxTokens }),
            },
          ];
    });
    return [
      {
        from,
        settings: {
          id: toName(id, 'provider'),
          type,
          ...(baseUrl !== undefined && { baseUrl }),
          ...(key !== undefined && { key }),
          ...(models.length > 0 && { models }),
        },
      },
    ];
  });
}

function isCount(value: unknown, least: number): value is number {
  return Number.isInteger(value) && Number(value) >= least;
}

/** Keys that OpenClaw keeps for each agent; those of sign-ins cannot be taken along. */
async function readAuthProfiles(source: SourceFolder, keys: Parameters<typeof addVariables>[2]): Promise<void> {
  for (const agent of await source.entries('agents', 'folder')) {
    const from = `agents/${agent}/agent/auth-profiles.json`;
    for (const [name, profile] of Object.entries(at(await source.json(from), 'profiles'))) {
      const { type, provider, key } = at(profile);
      const id = textOf(provider) ?? name;
      if (type !== 'api_key')
        keys.left.push({
          what: `sign-in ${name}`,
          from,
          reason: 'only API keys can be taken along',
        });
      else addVariables([[`${id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_API_KEY`, key]], from, keys);
    }
  }
}

async function readJobs(source: SourceFolder, config: Values, left: Left[], nowMs: number) {
  const stored = textOf(at(config, 'cron')['store'])?.replace(/^~\/\.openclaw\//, '') ?? 'cron/jobs.json';
  const from = source.inside(stored) ?? 'cron/jobs.json';
  const jobs = new Map<string, ImportedJob[]>();
  const defaultJobs: ImportedJob[] = [];
  const value = await source.json(from);
  for (const [index, job] of listOf(isValues(value) ? value['jobs'] : value).entries()) {
    const name = textOf(at(job)['name']) ?? textOf(at(job)['id']) ?? `job ${index + 1}`;
    const read = toJob(at(job), name, from, nowMs);
    const agentId = textOf(at(job)['agentId']);
    if ('reason' in read) left.push({ what: `job ${name}`, from, reason: read.reason });
    else if (agentId === undefined) defaultJobs.push(read);
    else jobs.set(toName(agentId, 'agent'), [...(jobs.get(toName(agentId, 'agent')) ?? []), read]);
  }
  return { jobs, defaultJobs };
}

/** Takes a job over; its answer goes to the inbox. Also for products that keep jobs in the same form. */
export function toJob(job: Values, name: string, from: string, nowMs: number): ImportedJob | { readonly reason: string } {
  if (job['enabled'] === false || job['paused'] === true) return { reason: 'it is switched off' };
  const schedule = toSchedule(at(job, 'schedule'), nowMs);
  if (typeof schedule === 'string') return { reason: schedule };
  const payload = at(job, 'payload');
  const text = textOf(payload['message']) ?? textOf(payload['text']);
  if (text === undefined) return { reason: 'it has neither a message nor a text' };
  const isTurn = payload['kind'] === 'agentTurn' || payload['kind'] === 'agent_turn';
  const seconds = payload['timeoutSeconds'];
  const model = textOf(payload['model']);
  return {
    name: name.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, ' ').slice(0, 200),
    from,
    schedule,
    payload: isTurn
      ? {
          kind: 'agent_turn',
          message: text,
          ...(model !== undefined && { model }),
          ...(isCount(seconds, 1) && seconds <= 86_400 && { timeoutSeconds: seconds }),
        }
      : {
          kind: 'heartbeat_event',
          text,
          wakeMode: job['wakeMode'] === 'now' ? 'now' : 'next-heartbeat',
        },
    changes: 'delivery' in job || 'deliveryTarget' in job ? ['its answer goes to the inbox'] : [],
  };
}

function toSchedule(schedule: Values, nowMs: number): ImportedJob['schedule'] | string {
  const { kind, expr, tz, everyMs, at: time, atMs } = schedule;
  if (kind === 'cron' && textOf(expr) !== undefined)
    return {
      kind,
      expr: `${expr as string}`,
      ...(textOf(tz) !== undefined && { tz: `${tz as string}` }),
    };
  if (kind === 'every' && isCount(everyMs, 1)) return { kind, everyMs };
  if (kind !== 'at') return `its schedule is not one that Gatehouse knows (kind ${JSON.stringify(kind)})`;
  const dueMs = isCount(atMs, 0) ? atMs : Date.parse(`${textOf(time) ?? ''}`.replace(/(T[\d:.]+)$/, '$1Z'));
  if (Number.isNaN(dueMs)) return 'its time is not a date';
  return dueMs <= nowMs ? 'its time is over' : { kind, at: new Date(dueMs).toISOString() };
}
