import * as z from 'zod';
import { ConfigError, type ConfigProblem, dotted, type Path } from './config-error.ts';
import type { SecretLookup } from './configuration.ts';
import { type ParsedDocument, type Place, readDocument } from './document.ts';
import { findingsOf } from './problems.ts';
import { type Environment, resolveReferences } from './references.ts';
import { bare, isSecretPath, schemaAt, step } from './schema-walk.ts';
import { liveSecrets } from './secrets.ts';

/** Largest configuration file, in bytes. */
export const maxConfigBytes = 1_048_576;

/** A value from outside the file that wins over it. */
export interface Override {
  readonly path: Path;
  readonly value: unknown;
  /** Name in messages: `--port`, `GATEHOUSE_PORT`. */
  readonly source: string;
}

export interface LoadedConfig<Config> {
  readonly config: Config;
  /** What it was read from. */
  readonly text: string;
  readonly files: readonly string[];
  /** Live secret values, for the redactor. */
  readonly secrets: readonly string[];
  /** True when the file itself holds a secret, not only `${NAME}` references. */
  readonly literalSecrets: boolean;
  /** Returns the error for the value at `path`, with its position; used for what a schema cannot check (a model that no provider has). */
  errorAt(path: Path, message: string): ConfigError;
}

export interface ConfigSource<Schema extends z.ZodType> {
  readonly schema: Schema;
  /** The file's name in messages. */
  readonly file: string;
  readonly text: string;
  readonly env: Environment;
  /** Looks up names that the environment does not have. */
  readonly secrets?: SecretLookup | undefined;
  /** Applied in order after the file was read. */
  readonly overrides?: readonly Override[];
}

/**
 * Returns the configuration of a file, with `${NAME}` references resolved and overrides applied, validated as a whole.
 * Fails with a ConfigError that names every problem; no message contains the value of a secret.
 */
export function loadConfig<Schema extends z.ZodType>(source: ConfigSource<Schema>): LoadedConfig<z.output<Schema>> {
  const { schema, file, env, secrets, overrides = [] } = source;
  const lookup: SecretLookup = (name) => env[name] || secrets?.(name);
  if (Buffer.byteLength(source.text) > maxConfigBytes)
    throw new ConfigError([{ source: file, message: `the file is larger than ${maxConfigBytes} bytes` }]);
  const problems: ConfigProblem[] = [];
  const fromEnvironment = new Set<string>();
  let literalSecrets = false;

  const replaceText = (text: string, path: Path, place: Place): unknown => {
    const resolved = resolveReferences(text, lookup);
    if (resolved.kind === 'problem') {
      problems.push({ source: file, ...place, key: dotted(path), message: resolved.message });
      return text;
    }
    if (resolved.kind === 'literal') {
      literalSecrets ||= isSecretPath(schema, path);
      return resolved.text;
    }
    fromEnvironment.add(JSON.stringify(path));
    return resolved.whole ? asSchemaWants(schema, path, resolved.text) : resolved.text;
  };
  // Some editors write a byte-order mark first.
  const read = readDocument(file, source.text.replace(/^\uFEFF/, ''), replaceText);
  problems.unshift(...read.problems);
  if (read.document === undefined || problems.length > 0) throw new ConfigError(inOrder(problems));

  const root = withEmptySections(schema, read.document.value ?? {});
  if (typeof root !== 'object' || root === null || Array.isArray(root))
    throw new ConfigError([
      {
        source: file,
        ...read.document.place([]),
        message: `expected sections (keys with values below them), found ${Array.isArray(root) ? 'a list' : 'a single value'}`,
      },
    ]);
  const value: Record<string, unknown> = Object.assign(Object.create(null), root);
  for (const override of overrides) setIn(value, override.path, override.value);
  // Used once: generating and compiling a parser for each of its objects would cost more than it saves.
  const parsed = schema.safeParse(value, { jitless: true });
  const { document } = read;
  if (!parsed.success) {
    const hidden = (path: Path) => path.some((_, index) => fromEnvironment.has(JSON.stringify(path.slice(0, index + 1))));
    throw new ConfigError(inOrder(toProblems(parsed.error.issues, { ...source, value, hidden, document })));
  }
  return {
    config: parsed.data,
    text: source.text,
    files: [file],
    secrets: liveSecrets(schema, parsed.data),
    literalSecrets,
    errorAt: (path, message) => new ConfigError([{ source: file, ...document.place(path), key: dotted(path), message }]),
  };
}

function toProblems(
  issues: readonly z.core.$ZodIssue[],
  context: {
    schema: z.ZodType;
    file: string;
    value: unknown;
    overrides?: readonly Override[];
    hidden: (path: Path) => boolean;
    document: ParsedDocument;
  },
): ConfigProblem[] {
  return findingsOf(issues, context).map((finding) => {
    const override = context.overrides?.findLast(
      (one) => one.path.length <= finding.path.length && one.path.every((part, index) => finding.path[index] === part),
    );
    if (override !== undefined) return { source: override.source, message: finding.message };
    const place = finding.atKey ? context.document.keyPlace(finding.path) : context.document.place(finding.path);
    return { source: context.file, ...place, ...(finding.key !== '' && { key: finding.key }), message: finding.message };
  });
}

function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

/** Converts a text (of an environment variable, of a command line) to the type that the schema expects at a path, if it can. */
export function asSchemaWants(schema: z.ZodType, path: Path, text: string): unknown {
  const wanted = schemaAt(schema, path);
  const thing = wanted === undefined ? undefined : bare(wanted);
  if (thing instanceof z.ZodNumber && /^-?\d+(\.\d+)?$/.test(text.trim())) return Number(text);
  if (thing instanceof z.ZodBoolean && /^(true|false)$/.test(text.trim())) return text.trim() === 'true';
  return text;
}

/** Treats an empty value as an empty section: that is what a key becomes when all lines below it are commented out. */
function withEmptySections(schema: z.core.$ZodType | undefined, value: unknown): unknown {
  if (schema === undefined) return value;
  if (value === null) {
    const thing = bare(schema);
    if (thing instanceof z.ZodArray) return [];
    return thing instanceof z.ZodObject || thing instanceof z.ZodRecord ? {} : null;
  }
  if (Array.isArray(value)) return value.map((item, index) => withEmptySections(step(schema, index), item));
  if (typeof value !== 'object') return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [key, part] of Object.entries(value)) copy[key] = withEmptySections(step(schema, key), part);
  return copy;
}

/** Sets a nested value; a non-object on the path is left for validation to report. */
function setIn(target: Record<string, unknown>, path: Path, value: unknown): void {
  const [head, ...rest] = path;
  if (head === undefined) return;
  if (rest.length === 0) {
    target[head] = value;
    return;
  }
  const below = target[head] ?? {};
  if (typeof below !== 'object' || Array.isArray(below)) return;
  const copy: Record<string, unknown> = { ...below };
  target[head] = copy;
  setIn(copy, rest, value);
}
