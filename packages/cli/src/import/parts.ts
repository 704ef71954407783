import { vendorOffers } from '@gatehouse/contract/vendor-list';
import type { ImportedFile, ImportedMemory, ImportedSecret, ImportedProvider, ImportedSkill, Left } from './bundle.ts';
import type { SourceFolder } from './source-folder.ts';

/** Files of a workspace that belong to the prompt, in Gatehouse and in the products that share its layout. */
const promptFiles = ['SOUL.md', 'IDENTITY.md', 'USER.md', 'AGENTS.md', 'ROLE.md', 'TOOLS.md', 'HEARTBEAT.md', 'BOOT.md'];
const maxPromptFile = 512 * 1024;
const maxMemory = 8000;
const maxMemories = 2000;
const maxSkillFiles = 200;

export type Values = Readonly<Record<string, unknown>>;

export function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the object at a key, an empty one when there is none. */
export function at(value: unknown, ...keys: readonly string[]): Values {
  const found = keys.reduce<unknown>((inner, key) => (isValues(inner) ? inner[key] : undefined), value);
  return isValues(found) ? found : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns a name that Gatehouse accepts for agents and skills: lower-case letters, digits and single hyphens. */
export function toName(text: string, fallback: string): string {
  const name = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 48)
    .replace(/-+$/, '');
  return /^[a-z]/.test(name) ? name : name === '' ? fallback : `${fallback}-${name}`;
}

/** Splits Markdown into memories: each item of a list and each paragraph is one, with the headings above it. */
function toMemories(markdown: string, from: string, memoryType: ImportedMemory['memoryType']): ImportedMemory[] {
  const memories: ImportedMemory[] = [];
  const headings: string[] = [];
  let block: string[] = [];
  const end = (): void => {
    const text = block.join('\n').trim();
    block = [];
    if (text === '' || memories.length >= maxMemories) return;
    const above = headings.filter((heading) => heading !== '').join(' › ');
    memories.push({
      content: `${above === '' ? '' : `${above}: `}${text}`.slice(0, maxMemory).toWellFormed(),
      from,
      memoryType,
    });
  };
  for (const line of markdown.replace(/^---\n[^]*?\n---\n/, '').split(/\r?\n/)) {
    const [, marks, heading] = /^(#{1,6})\s+(.*)$/.exec(line) ?? [];
    if (marks !== undefined && heading !== undefined) {
      end();
      headings.splice(marks.length - 1);
      headings[marks.length - 1] = heading.trim();
      for (let level = 0; level < headings.length; level += 1) headings[level] ??= '';
    } else if (line.trim() === '') end();
    else {
      if (/^[-*+]\s|^\d+[.)]\s/.test(line)) end();
      block.push(line.replace(/^[-*+]\s+|^\d+[.)]\s+/, ''));
    }
  }
  end();
  return memories;
}

/** Reads the prompt files of a workspace. */
export async function readPromptFiles(source: SourceFolder, workspace: string, left: Left[]): Promise<ImportedFile[]> {
  const files: ImportedFile[] = [];
  for (const path of promptFiles) {
    const from = `${workspace}/${path}`;
    const content = await source.text(from);
    if (content === undefined || content.trim() === '') continue;
    if (Buffer.byteLength(content) > maxPromptFile) left.push({ what: `file ${path}`, from, reason: `longer than ${maxPromptFile} bytes` });
    else files.push({ path, content, from });
  }
  return files;
}

/** Reads MEMORY.md and the notes below memory/ of a workspace. */
export async function readMemoryFiles(source: SourceFolder, workspace: string): Promise<ImportedMemory[]> {
  const memories: ImportedMemory[] = [];
  const whole = await source.text(`${workspace}/MEMORY.md`);
  if (whole !== undefined) memories.push(...toMemories(whole, `${workspace}/MEMORY.md`, 'semantic'));
  for (const name of await source.entries(`${workspace}/memory`, 'file')) {
    if (!name.endsWith('.md')) continue;
    const from = `${workspace}/memory/${name}`;
    const day = /^\d{4}-\d{2}-\d{2}/.exec(name)?.[0];
    const notes = toMemories((await source.text(from)) ?? '', from, day === undefined ? 'semantic' : 'episodic');
    memories.push(...notes.map((note) => (day === undefined ? note : { ...note, content: `${day}: ${note.content}` })));
  }
  return memories;
}

/** Reads the skills of a folder: folders with a SKILL.md and text files. */
export async function readSkills(source: SourceFolder, folder: string, left: Left[]): Promise<ImportedSkill[]> {
  const skills: ImportedSkill[] = [];
  for (const name of await source.entries(folder, 'folder')) {
    const from = `${folder}/${name}`;
    if ((await source.file(`${from}/SKILL.md`)) === undefined) left.push({ what: `skill ${name}`, from, reason: 'it has no SKILL.md' });
    else skills.push(await readSkillFolder(source, from, name));
  }
  return skills;
}

async function readSkillFolder(source: SourceFolder, from: string, folderName: string): Promise<ImportedSkill> {
  const files: { path: string; content: string }[] = [];
  async function walk(below: string): Promise<void> {
    for (const name of await source.entries(`${from}/${below}`, 'file')) {
      if (files.length >= maxSkillFiles) return;
      const content = await source.text(`${from}/${below}${name}`);
      if (content !== undefined) files.push({ path: `${below}${name}`, content });
    }
    for (const name of await source.entries(`${from}/${below}`, 'folder')) if (name !== 'node_modules') await walk(`${below}${name}/`);
  }
  await walk('');
  // The name in the manifest is that of the skill.
  const manifest = files.find(({ path }) => path === 'SKILL.md')?.content ?? '';
  const declared = /^name:\s*["']?([^"'\n]+?)["']?\s*$/m.exec(/^---\r?\n([^]*?)\r?\n---/.exec(manifest)?.[1] ?? '')?.[1];
  const name = toName(declared ?? folderName, 'skill');
  const isRenamed = declared !== undefined && declared !== name;
  return {
    name,
    from,
    files: isRenamed
      ? files.map((file) => (file.path === 'SKILL.md' ? { ...file, content: file.content.replace(/^name:.*$/m, `name: ${name}`) } : file))
      : files,
    changes: isRenamed ? [`renamed from "${declared}"`] : [],
  };
}

type ProviderType = ImportedProvider['settings']['type'];

/** Returns the type of a provider by its id; undefined for one that only has an address. */
export function providerType(id: string): ProviderType | undefined {
  return vendorOffers.find(({ type, kind }) => kind !== 'own' && type === id)?.type;
}

/** Returns the vendor whose key a variable holds. */
function vendorOfKey(variable: string): ProviderType | undefined {
  const name = variable === 'GEMINI_API_KEY' ? 'google' : /^(.+)_API_KEY$/.exec(variable)?.[1]?.toLowerCase();
  return vendorOffers.find(({ type, kind }) => kind === 'hosted' && type === name)?.type;
}

/** Takes variables that hold secrets: a key of a vendor becomes its provider, unless that is imported already. */
export function addVariables(
  variables: Iterable<readonly [string, unknown]>,
  from: string,
  {
    providers,
    secrets,
    left,
  }: {
    readonly providers: ImportedProvider[];
    readonly secrets: ImportedSecret[];
    readonly left: Left[];
  },
): void {
  for (const [name, value] of variables) {
    const secret = textOf(value);
    if (secret === undefined) continue;
    const vendor = vendorOfKey(name);
    if (!/^[A-Z][A-Z0-9_]{0,127}$/.test(name))
      left.push({
        what: `variable ${name}`,
        from,
        reason: 'not a name for a secret: expected capital letters, digits and _',
      });
    else if (vendor === undefined) secrets.push({ name, value: secret, from: `${from}: ${name}` });
    else addKey(vendor, secret, `${from}: ${name}`);
  }

  function addKey(vendor: ProviderType, key: string, place: string): void {
    const index = providers.findIndex(({ settings }) => settings.id === vendor);
    const present = providers[index];
    if (present === undefined) providers.push({ settings: { id: vendor, type: vendor, key }, from: place });
    else if (present.settings.key === undefined) providers[index] = { ...present, settings: { ...present.settings, key } };
    else if (present.settings.key !== key)
      left.push({ what: `another key of provider ${vendor}`, from: place, reason: 'one is taken: add it with `gatehouse providers set`' });
  }
}

/** Returns the assignments of a file such as `.env`. */
export function parseVariables(text: string): [string, string][] {
  return text.split(/\r?\n/).flatMap((line): [string, string][] => {
    const [, name, value] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value.replace(/^(["'])(.*)\1$/, '$2')]];
  });
}

/** Returns milliseconds of a duration such as `30m`. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(text.trim()) ?? [];
  if (count === undefined) return undefined;
  return Math.round(Number(count) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit ?? 'm'] ?? 60_000));
}
