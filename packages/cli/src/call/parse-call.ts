import { isJsonObject, type Json, type JsonObject } from '@gatehouse/contract';
import { usageError } from '../failure.ts';
import { findFlag, flagNames, type FlagTarget } from './flag-path.ts';
import { isSwitch, readFlagValue } from './flag-value.ts';
import type { MethodShape } from './method-shape.ts';

/** Flags of the command itself that may follow the method name; a parameter of the same name takes precedence. */
const ownFlags = ['url', 'token-file', 'home', 'output', 'jq', 'timeout'] as const;
type OwnFlag = (typeof ownFlags)[number];

export interface ParsedCall {
  readonly params: JsonObject;
  readonly own: Readonly<Partial<Record<OwnFlag, string>>>;
  readonly help: boolean;
}

interface Word {
  readonly flag: string;
  /** Present for `--flag=value`. */
  readonly attached: string | undefined;
}

/**
 * Parses the arguments after the method name: `--json` sets all parameters at once, other flags then override single ones.
 * `readJson` turns the text after `--json` into JSON (the text may name a file or standard input).
 */
export async function parseCall(words: readonly string[], shape: MethodShape, readJson: (text: string) => Promise<string>): Promise<ParsedCall> {
  const given: { target: FlagTarget; value: Json }[] = [];
  const own: Partial<Record<OwnFlag, string>> = {};
  const known = new Set(flagNames(shape));
  let base: JsonObject = {};
  let help = false;

  for (let index = 0; index < words.length;) {
    const { flag, attached } = readWord(words[index] ?? '');
    index += 1;
    const following = words[index];
    const value = (): string => {
      if (attached !== undefined) return attached;
      if (following === undefined || following.startsWith('--'))
        throw usageError(`--${flag} needs a value${following === undefined ? '' : `; one that begins with -- is written --${flag}=${following}`}.`);
      index += 1;
      return following;
    };

    if (flag === 'help' && !known.has(flag)) help = true;
    else if (flag === 'json' && !known.has(flag)) base = parseObject(await readJson(value()));
    else if (isOwnFlag(flag) && !known.has(flag)) own[flag] = value();
    else given.push(joined(given, readParameter({ flag, attached, following, value }, shape)));
  }

  let params = base;
  for (const { target, value } of given) params = withValue(params, target.path, value);
  return { params, own, help };
}

/** Flags with a short form. */
const shortForms: Readonly<Record<string, string>> = { '-h': '--help', '-o': '--output' };

function readWord(word: string): Word {
  const match = /^--([^=]+)(?:=([^]*))?$/.exec(shortForms[word] ?? word);
  if (match?.[1] === undefined) throw usageError(`Unexpected argument ${JSON.stringify(word)}: pass parameters as --name value.`);
  return { flag: match[1], attached: match[2] };
}

function isOwnFlag(flag: string): flag is OwnFlag {
  return ownFlags.some((name) => name === flag);
}

interface FlagUse extends Word {
  readonly following: string | undefined;
  value(): string;
}

function readParameter(use: FlagUse, shape: MethodShape): { target: FlagTarget; value: Json } {
  const { flag } = use;
  const negated = flag.startsWith('no-') && use.attached === undefined ? tryFlag(flag.slice(3), shape) : undefined;
  if (negated !== undefined && isSwitch(negated.schema, shape.lookup)) return { target: negated, value: false };
  const target = findFlag(flag, shape);
  const standsAlone = use.attached === undefined && use.following !== 'true' && use.following !== 'false' && isSwitch(target.schema, shape.lookup);
  return { target, value: standsAlone ? true : readFlagValue(flag, use.value(), target.schema, shape.lookup) };
}

function tryFlag(flag: string, shape: MethodShape): FlagTarget | undefined {
  try {
    return findFlag(flag, shape);
  } catch {
    return undefined;
  }
}

function parseObject(text: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError(`--json is not valid JSON: ${error instanceof Error ? error.message : String(error)}.`);
  }
  if (!isJsonObject(value)) throw usageError('--json must be an object with the parameters.');
  return value;
}

/** Turns repeated flags into a list where the schema does not define the type. */
function joined(given: { target: FlagTarget; value: Json }[], next: { target: FlagTarget; value: Json }): { target: FlagTarget; value: Json } {
  const free = Object.keys(next.target.schema).length === 0;
  const before = free ? given.findLast(({ target }) => target.path.join('.') === next.target.path.join('.')) : undefined;
  if (before === undefined || isJsonObject(before.value) || isJsonObject(next.value)) return next;
  return { ...next, value: Array.isArray(before.value) ? [next.value].flat() : [before.value, next.value].flat() };
}

/** Copies the object with one value set; appends lists of repeated flags. */
function withValue(object: JsonObject, [key = '', ...rest]: readonly string[], value: Json): JsonObject {
  const current = Object.hasOwn(object, key) ? object[key] : undefined;
  if (rest.length > 0) return { ...object, [key]: withValue(isJsonObject(current) ? current : {}, rest, value) };
  return { ...object, [key]: Array.isArray(current) && Array.isArray(value) ? [...current, ...value] : value };
}
