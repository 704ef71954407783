import * as z from 'zod';
import { SkillName, once } from '@gatehouse/contract';

const TextList = once(() =>
  z.union([
    z.array(z.string().max(256)).max(100),
    z
      .string()
      .max(4096)
      .transform((text) => text.split(/[\s,]+/).filter(Boolean)),
  ]),
);
const Systems = once(() => z.union([z.string().transform((one) => [one]), z.array(z.string())]).pipe(z.array(z.string().max(32)).max(10)));

/** The front matter of a SKILL.md, after foreign keys were mapped. */
export const SkillManifest = once(() =>
  z.strictObject({
    name: SkillName(),
    description: z.string().trim().min(1).max(1024),
    type: z.literal('prompt').default('prompt'),
    version: z.union([z.string().max(64), z.number().transform(String)]).optional(),
    license: z.string().max(256).optional(),
    argumentHint: z.string().max(256).optional(),
    userInvocable: z.boolean().default(true),
    disableModelInvocation: z.boolean().default(false),
    allowedTools: TextList().default([]),
    permissions: z
      .strictObject({ fsRead: TextList().default([]), fsWrite: TextList().default([]), net: TextList().default([]), env: TextList().default([]) })
      .partial()
      .optional(),
    inputSchema: z.record(z.string(), z.unknown()).optional(),
    metadata: z.record(z.string().max(128), z.string().max(4096)).optional(),
    gatehouse: z
      .strictObject({
        os: Systems().default([]),
        requires: z
          .strictObject({
            bins: z
              .array(z.string().regex(/^[\w.+-]{1,64}$/, 'expected the bare name of a program'))
              .max(32)
              .default([]),
            env: z
              .array(z.string().regex(/^[A-Za-z_]\w{0,127}$/, 'expected the name of a variable'))
              .max(32)
              .default([]),
          })
          .prefault({}),
      })
      .prefault({}),
  }),
);
export type SkillManifest = z.output<ReturnType<typeof SkillManifest>>;

/** Equivalent keys of other systems. */
const spellings: Readonly<Record<string, string>> = {
  'allowed-tools': 'allowedTools',
  allowed_tools: 'allowedTools',
  'user-invocable': 'userInvocable',
  user_invocable: 'userInvocable',
  'disable-model-invocation': 'disableModelInvocation',
  disable_model_invocation: 'disableModelInvocation',
  'argument-hint': 'argumentHint',
  argument_hint: 'argumentHint',
  'input-schema': 'inputSchema',
};
/** Keys by which other systems run something. This one never does, but their author wants it run. */
const executable =
  /^(?:command|commands|command-dispatch|run|exec|execute|entry|entrypoint|entry-point|main|bin|script|scripts|hooks?|install|installer|postinstall|preinstall|setup|mcp-?servers?|server)$/i;
const unsafeKeys = new Set(['__proto__', 'constructor', 'prototype']);
const known = once(() => new Set(Object.keys(SkillManifest().shape)));
const maxManifestCharacters = 16_384;

export interface ParsedSkill {
  readonly manifest: SkillManifest;
  readonly body: string;
  /** Keys without a meaning here. */
  readonly dropped: readonly string[];
  /** Those among them that name something to run. */
  readonly executableKeys: readonly string[];
}

export type ManifestProblem = { readonly rule: 'UNPARSEABLE' | 'NOT_PROMPT'; readonly why: string };

/** Parses a SKILL.md: YAML between two lines of `---`, then Markdown. No aliases, no tags, no duplicate keys. */
export async function parseSkill(text: string): Promise<ParsedSkill | ManifestProblem> {
  const plain = text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  const match = /^---[ \t]*\n([\s\S]*?)\n---[ \t]*(?:\n|$)/.exec(plain.slice(0, maxManifestCharacters + 8));
  if (match === null) return unparseable(`expected YAML of at most ${maxManifestCharacters} characters between two lines of "---" at the beginning`);
  // Rare: most daemons have no skills.
  const { parseDocument } = await import('./yaml.ts');
  const document = parseDocument(match[1] ?? '', { uniqueKeys: true, merge: false, strict: true, prettyErrors: false });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) return unparseable(problem.message.slice(0, 200));
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch {
    return unparseable('aliases are not supported');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return unparseable('expected keys and values');
  const unsafe = findUnsafe(value, 0);
  if (unsafe !== undefined) return unparseable(unsafe);
  const kept: Record<string, unknown> = {};
  const dropped: string[] = [];
  for (const [key, entry] of Object.entries(value)) {
    const name = spellings[key] ?? key;
    if (!known().has(name)) dropped.push(key.slice(0, 64));
    else if (name in kept) return unparseable(`${name} is given twice`);
    else kept[name] = name === 'metadata' ? plainMetadata(entry, dropped) : entry;
  }
  if (kept['type'] !== undefined && kept['type'] !== 'prompt') return { rule: 'NOT_PROMPT', why: 'only skills of type "prompt" are supported' };
  const parsed = SkillManifest().safeParse(kept);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return unparseable(`${issue?.path.join('.') ?? 'manifest'}: ${issue?.message ?? 'not valid'}`);
  }
  return { manifest: parsed.data, body: plain.slice(match[0].length), dropped, executableKeys: dropped.filter((key) => executable.test(key)) };
}

function unparseable(why: string): ManifestProblem {
  return { rule: 'UNPARSEABLE', why };
}

/** Other systems keep whole objects there; texts stay, the rest is dropped. */
function plainMetadata(value: unknown, dropped: string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const plain: Record<string, string> = {};
  for (const [key, entry] of Object.entries(value)) {
    if (typeof entry === 'object' && entry !== null) dropped.push(`metadata.${key.slice(0, 64)}`);
    else plain[key] = String(entry);
  }
  return plain;
}

function findUnsafe(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > 16) return 'nested deeper than 16';
  for (const [key, entry] of Object.entries(value)) {
    if (unsafeKeys.has(key)) return `the key ${key} is not supported`;
    const inner = findUnsafe(entry, depth + 1);
    if (inner !== undefined) return inner;
  }
  return undefined;
}
