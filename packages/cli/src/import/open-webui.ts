import { basename, dirname } from 'node:path';
import { stat } from 'node:fs/promises';
import { CliError, unreadable } from '../failure.ts';
import type { Bundle, ImportedAgent, ImportedMemory, ImportedProvider, ImportedSkill, Left } from './bundle.ts';
import { at, isValues, listOf, providerType, textOf, toName, type Values } from './parts.ts';
import { SourceFolder } from './source-folder.ts';
import { readTable } from './sqlite-table.ts';

const database = 'webui.db';
/** Tables of what has no counterpart. */
const tablesLeft: Readonly<Record<string, string>> = {
  chat: 'conversations are not imported',
  knowledge: 'collections of files: put the files into a workspace and search them there',
  function: 'functions are programs of Open WebUI',
  tool: 'tools are programs of Open WebUI: offer them by an MCP server',
};

/** Reads `webui.db`, or the files that Open WebUI exports (models, prompts, memories), or a folder with them. */
export async function readOpenWebUi(path: string): Promise<Bundle> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    (error: Error) => {
      throw unreadable(path, error);
    },
  );
  const source = await SourceFolder.open(isFolder ? path : dirname(path));
  const left: Left[] = [];
  const names = isFolder ? [...(await source.entries('.', 'file'))] : [basename(path)];
  const rows = {
    models: [] as Row[],
    prompts: [] as Row[],
    memories: [] as Row[],
    config: [] as Row[],
  };
  for (const name of names.filter((each) => each.endsWith('.db'))) await addDatabase(source, name, rows, left);
  for (const name of names.filter((each) => each.endsWith('.json'))) await addExport(source, name, rows, left);
  if (Object.values(rows).every((found) => found.length === 0) && left.length === 0)
    throw new CliError(`${path} holds nothing of Open WebUI.`, {
      hint: `Expected ${database}, or files exported as JSON.`,
    });
  const skills = rows.prompts.flatMap((row) => toSkill(row, left));
  const memories = rows.memories.flatMap(toMemory);
  const agents = rows.models.flatMap((row) => toAgent(row, left));
  // Prompts and memories belong to a person there; here, to the default agent.
  const shared: ImportedAgent = {
    id: 'default',
    from: database,
    config: undefined,
    changes: [],
    files: [],
    skills,
    memories,
    jobs: [],
  };
  return {
    product: 'open-webui',
    agents: skills.length + memories.length === 0 ? agents : [shared, ...agents],
    providers: rows.config.flatMap((row) => toProviders(row)),
    secrets: [],
    left,
  };
}

interface Row {
  readonly from: string;
  readonly value: Values;
}

type Rows = Record<'models' | 'prompts' | 'memories' | 'config', Row[]>;

async function addDatabase(source: SourceFolder, name: string, rows: Rows, left: Left[]): Promise<void> {
  const read = async (table: string, columns: readonly string[]) =>
    ((await readTable(source, name, table, columns, left)) ?? []).map((value) => ({
      from: `${name}: ${table}`,
      value,
    }));
  rows.models.push(...(await read('model', ['id', 'name', 'params'])));
  rows.prompts.push(...(await read('prompt', ['command', 'content'])));
  rows.memories.push(...(await read('memory', ['content'])));
  rows.config.push(...(await read('config', ['data'])));
  for (const [table, reason] of Object.entries(tablesLeft)) {
    const found = (await readTable(source, name, table, [], [])) ?? [];
    if (found.length > 0)
      left.push({
        what: `${found.length} ${found.length === 1 ? 'row' : 'rows'} of ${table}`,
        from: `${name}: ${table}`,
        reason,
      });
  }
}

/** An export is a list; its entries say what they are. */
async function addExport(source: SourceFolder, name: string, rows: Rows, left: Left[]): Promise<void> {
  for (const [index, value] of listOf(await source.json(name)).entries()) {
    const from = `${name}: [${index}]`;
    if (!isValues(value)) left.push({ what: `entry ${index}`, from, reason: 'expected an object' });
    else if ('command' in value && 'content' in value) rows.prompts.push({ from, value });
    else if ('params' in value || 'base_model_id' in value) rows.models.push({ from, value });
    else if ('chat' in value || 'messages' in value) left.push({ what: 'conversation', from, reason: 'conversations are not imported' });
    else if ('content' in value) rows.memories.push({ from, value });
    else left.push({ what: `entry ${index}`, from, reason: 'neither a model, a prompt nor a memory' });
  }
}

/** Columns of JSON are text in a database, and objects in an export. */
function jsonOf(value: unknown): Values {
  if (typeof value !== 'string') return at(value);
  try {
    return at(JSON.parse(value) as unknown);
  } catch {
    return {};
  }
}

function toAgent({ value, from }: Row, left: Left[]): ImportedAgent[] {
  const given = textOf(value['id']) ?? textOf(value['name']) ?? 'model';
  const params = jsonOf(value['params']);
  const system = textOf(params['system']);
  const base = textOf(value['base_model_id']);
  if (base === undefined && system === undefined) {
    left.push({
      what: `model ${given}`,
      from,
      reason: 'a model without a prompt: connect its provider instead',
    });
    return [];
  }
  const id = toName(given, 'agent');
  const { temperature, max_tokens: maxTokens } = params;
  const isActive = value['is_active'] !== 0 && value['is_active'] !== false;
  return [
    {
      id: id === 'default' ? 'default-model' : id,
      from,
      config: {
        name: (textOf(value['name']) ?? given).slice(0, 128),
        ...(base !== undefined && { model: base }),
        ...(typeof temperature === 'number' && temperature >= 0 && temperature <= 2 && { temperature }),
        ...(typeof maxTokens === 'number' && Number.isInteger(maxTokens) && maxTokens >= 1 && { maxTokens }),
      },
      changes: [...(id === given ? [] : [`renamed from "${given}"`]), ...(isActive ? [] : ['it was switched off there'])],
      files: system === undefined ? [] : [{ path: 'ROLE.md', content: `${system.trim()}\n`, from }],
      skills: [],
      memories: [],
      jobs: [],
    },
  ];
}

function toSkill({ value, from }: Row, left: Left[]): ImportedSkill[] {
  const content = textOf(value['content']);
  const command = textOf(value['command'])?.replace(/^\//, '');
  if (content === undefined || command === undefined) {
    left.push({ what: `prompt ${command ?? ''}`.trim(), from, reason: 'it is empty' });
    return [];
  }
  const name = toName(command, 'prompt');
  const title = (textOf(value['title']) ?? textOf(value['name']) ?? command).replaceAll(/\s+/g, ' ').slice(0, 200);
  const variables = [...new Set([...content.matchAll(/\{\{\s*([^{}]{1,80}?)\s*\}\}/g)].map(([, variable = '']) => variable))];
  const manifest = `---\nname: ${name}\ndescription: ${JSON.stringify(`Use when asked for: ${title}`)}\n---\n`;
  return [
    {
      name,
      from,
      files: [{ path: 'SKILL.md', content: `${manifest}\n${content.trim()}\n` }],
      changes: [
        ...(name === command ? [] : [`renamed from "${command}"`]),
        'a prompt becomes a skill',
        ...(variables.length === 0 ? [] : [`its variables stay as text: ${variables.slice(0, 5).join(', ')}`]),
      ],
    },
  ];
}

function toMemory({ value, from }: Row): ImportedMemory[] {
  const content = textOf(value['content']);
  return content === undefined ? [] : [{ content: content.slice(0, 8000).toWellFormed(), from, memoryType: 'semantic' }];
}

/** Connections to OpenAI-compatible servers and to Ollama. */
function toProviders({ value, from }: Row): ImportedProvider[] {
  const data = jsonOf(value['data']);
  const keys = listOf(at(data, 'openai')['api_keys']);
  const servers = listOf(at(data, 'openai')['api_base_urls']).flatMap((url, index) => {
    const baseUrl = textOf(url);
    if (baseUrl === undefined || !URL.canParse(baseUrl)) return [];
    const { hostname } = new URL(baseUrl);
    const vendor = providerType(hostname.split('.').at(-2) ?? '');
    const key = textOf(keys[index]);
    const id = vendor ?? toName(hostname, 'server');
    return [
      {
        from: `${from}: openai.api_base_urls[${index}]`,
        settings: {
          id,
          type: vendor ?? ('openai-compatible' as const),
          ...(vendor === undefined && { baseUrl }),
          ...(key !== undefined && { key }),
        },
      },
    ];
  });
  const ollama = textOf(listOf(at(data, 'ollama')['base_urls'])[0]);
  const local =
    ollama === undefined || !URL.canParse(ollama)
      ? []
      : [
          {
            from: `${from}: ollama.base_urls[0]`,
            settings: {
              id: 'ollama',
              type: 'ollama' as const,
              baseUrl: ollama.replace(/\/+$/, ''),
            },
          },
        ];
  const seen = new Set<string>();
  return [...servers, ...local].filter(({ settings }) => !seen.has(settings.id) && seen.add(settings.id));
}
