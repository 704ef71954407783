import { parseDocument } from 'yaml';
import { CliError } from '../failure.ts';
import type { Bundle, ImportedAgent, ImportedJob, ImportedMemory, ImportedProvider, ImportedSecret, Left } from './bundle.ts';
import { toJob } from './openclaw.ts';
import {
  addVariables,
  at,
  isValues,
  listOf,
  parseVariables,
  readMemoryFiles,
  readPromptFiles,
  readSkills,
  textOf,
  toName,
  type Values,
} from './parts.ts';
import type { SourceFolder } from './source-folder.ts';
import { readTable } from './sqlite-table.ts';

const sectionsLeft: Readonly<Record<string, string>> = {
  channels: 'channels to chat programs are not there yet',
  webhooks: 'webhooks are configured differently: see docs/guide/schedule.md',
  integrations: 'MCP servers and searches are configured differently: see docs/guide/mcp.md',
  gateway: 'address and tokens of the gateway stay as they are here',
  security: 'limits and permissions stay as they are here',
  approvals: 'approvals stay as they are here',
  browser: 'the browser is configured differently: see docs/guide/browser.md',
};

/** Reads a data folder of Comis. */
export async function readComis(source: SourceFolder, nowMs: number): Promise<Bundle> {
  const layers = [await readYaml(source, 'config.yaml'), await readYaml(source, 'config.local.yaml')].filter(isValues);
  if (layers.length === 0)
    throw new CliError(`${source.root} has no config.yaml.`, {
      hint: 'Expected the data folder of Comis.',
    });
  const config = layers.reduce((below, above) => mergeDeep(below, above));
  const left: Left[] = Object.entries(sectionsLeft).flatMap(([section, reason]) =>
    section in config ? [{ what: `section ${section}`, from: `config.yaml: ${section}`, reason }] : [],
  );
  const keys = { providers: [] as ImportedProvider[], secrets: [] as ImportedSecret[], left };
  addVariables(parseVariables((await source.text('.env')) ?? ''), '.env', keys);
  if ((await source.file('secrets.db')) !== undefined)
    left.push({
      what: 'secret store',
      from: 'secrets.db',
      reason: 'it is encrypted with the master key of Comis: set the secrets again with `gatehouse secrets set`',
    });
  const memories = await readMemories(source, left);
  const agents: ImportedAgent[] = [];
  const entries = Object.entries(at(config, 'agents'));
  for (const [given, value] of entries.length === 0 ? [['default', {}] as const] : entries)
    agents.push(await readAgent(source, given, at(value), memories, { left, nowMs }));
  for (const owner of memories.keys())
    if (!agents.some(({ id }) => id === owner))
      left.push({
        what: `memories of agent ${owner}`,
        from: 'memory.db',
        reason: 'the agent is not in the configuration',
      });
  return { product: 'comis', agents, providers: keys.providers, secrets: keys.secrets, left };
}

async function readAgent(
  source: SourceFolder,
  given: string,
  value: Values,
  memories: ReadonlyMap<string, readonly ImportedMemory[]>,
  { left, nowMs }: { readonly left: Left[]; readonly nowMs: number },
): Promise<ImportedAgent> {
  const id = toName(given, 'agent');
  const own = textOf(value['workspacePath']);
  const workspace = own === undefined ? (given === 'default' ? 'workspace' : `workspace-${given}`) : source.inside(own);
  if (workspace === undefined)
    left.push({
      what: `workspace of agent ${given}`,
      from: own ?? '',
      reason: `it is outside of ${source.root}`,
    });
  const folders = workspace === undefined ? [] : [workspace];
  const shared = given === 'default' ? await readSkills(source, 'skills', left) : [];
  return {
    id,
    from: `config.yaml: agents.${given}`,
    config: configOf(value, given),
    changes: id === given ? [] : [`renamed from "${given}"`],
    files: (await Promise.all(folders.map((folder) => readPromptFiles(source, folder, left)))).flat(),
    skills: [...(await Promise.all(folders.map((folder) => readSkills(source, `${folder}/skills`, left)))).flat(), ...shared],
    memories: [...(memories.get(id) ?? []), ...(await Promise.all(folders.map((folder) => readMemoryFiles(source, folder)))).flat()],
    jobs: await readJobs(source, given, left, nowMs),
  };
}

function configOf(value: Values, given: string): ImportedAgent['config'] {
  const [provider, model] = [textOf(value['provider']), textOf(value['model'])].map((each) => (each === 'default' ? undefined : each));
  const { maxSteps, temperature } = value;
  const failover = listOf(at(value, 'modelFailover')['fallbackModels']).flatMap((each) => {
    const id = textOf(each) ?? textOf(at(each)['model']);
    const of = textOf(at(each)['provider']);
    return id === undefined ? [] : [of === undefined ? id : `${of}/${id}`];
  });
  return {
    name: textOf(value['name']) ?? given,
    ...(model !== undefined && {
      model: provider === undefined || model.includes('/') ? model : `${provider}/${model}`,
    }),
    ...(failover.length > 0 && { fallbackModels: failover.slice(0, 8) }),
    ...(typeof maxSteps === 'number' && Number.isInteger(maxSteps) && maxSteps >= 1 && maxSteps <= 1000 && { maxSteps }),
    ...(typeof temperature === 'number' && temperature >= 0 && temperature <= 2 && { temperature }),
  };
}

/** Jobs are one file of JSON for each agent. */
async function readJobs(source: SourceFolder, agent: string, left: Left[], nowMs: number): Promise<ImportedJob[]> {
  const jobs: ImportedJob[] = [];
  const from = `cron/${agent}.json`;
  const value = await source.json(from);
  for (const [index, job] of listOf(isValues(value) ? value['jobs'] : value).entries()) {
    const name = textOf(at(job)['name']) ?? `job ${index + 1}`;
    const read = toJob(at(job), name, from, nowMs);
    if ('reason' in read) left.push({ what: `job ${name}`, from, reason: read.reason });
    else jobs.push(read);
  }
  return jobs;
}

async function readMemories(source: SourceFolder, left: Left[]): Promise<Map<string, ImportedMemory[]>> {
  const memories = new Map<string, ImportedMemory[]>();
  for (const row of (await readTable(source, 'memory.db', 'memories', ['content'], left)) ?? []) {
    const content = textOf(row['content']);
    if (content === undefined) continue;
    const agent = toName(textOf(row['agent_id']) ?? textOf(row['agentId']) ?? 'default', 'agent');
    const type = row['memory_type'] ?? row['type'];
    const memory = {
      content: content.slice(0, 8000).toWellFormed(),
      from: 'memory.db',
      memoryType: type === 'episodic' ? type : 'semantic',
    } as const;
    memories.set(agent, [...(memories.get(agent) ?? []), memory]);
  }
  return memories;
}

async function readYaml(source: SourceFolder, file: string): Promise<unknown> {
  const text = await source.text(file);
  if (text === undefined) return undefined;
  const parsed = parseDocument(text, { prettyErrors: true });
  const [error] = parsed.errors;
  if (error === undefined) return parsed.toJS({ maxAliasCount: 100 });
  const place = error.linePos?.[0];
  throw new CliError(`${file}:${place?.line ?? 1}:${place?.col ?? 1}: ${error.message.split('\n')[0]}`, { hint: 'Nothing was imported.' });
}

function mergeDeep(below: Values, above: Values): Values {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const under = merged[key];
    merged[key] = isValues(under) && isValues(value) ? mergeDeep(under, value) : value;
  }
  return merged;
}
