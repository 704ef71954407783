import * as z from 'zod';
import { stringify } from 'yaml';
import { bare, defaultOf, descriptionOf, step } from './schema-walk.ts';

export interface TemplateExamples {
  /** Value for a key without a default, by dotted path; `*` stands for the example name of a record. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Name of the one example entry of a record, by dotted path. */
  readonly names: Readonly<Record<string, string>>;
}

/**
 * Renders a configuration file in which everything is commented out and every value is the default. It is generated from the
 * schema, so the two cannot disagree. `##` lines explain, `#` lines are settings: remove the `# ` to set one.
 */
export function renderTemplate(schema: z.ZodObject, header: readonly string[], examples: TemplateExamples): string {
  const lines = header.map((line) => (line === '' ? '' : `## ${line}`));
  for (const [name, section] of Object.entries(schema.shape)) {
    lines.push('');
    renderKey(name, section, { path: name, indent: '', lines, examples });
  }
  return `${lines.join('\n')}\n`;
}

interface Frame {
  readonly path: string;
  readonly indent: string;
  readonly lines: string[];
  readonly examples: TemplateExamples;
}

function renderKey(name: string, schema: z.core.$ZodType, frame: Frame): void {
  const { lines, indent, examples, path } = frame;
  const thing = bare(schema);
  const text = descriptionOf(schema);
  if (Object.hasOwn(examples.values, path)) {
    explain(text, frame);
    setting(stringify({ [name]: examples.values[path] }, { lineWidth: 0 }), frame);
    return;
  }
  if (thing instanceof z.ZodObject && needsValues(schema, thing)) {
    explain(`${name}: ${text ?? ''} (no default) It holds:`, frame);
    for (const [key, part] of Object.entries(thing.shape)) explain(`  ${key}: ${descriptionOf(part) ?? ''}`, frame);
    return;
  }
  if (thing instanceof z.ZodObject) {
    explain(text, frame);
    lines.push(`# ${indent}${name}:`);
    renderKeys(thing, { ...frame, indent: `${indent}  ` });
    return;
  }
  const example = examples.names[path];
  const entry = example === undefined ? undefined : step(schema, example);
  if (example !== undefined && entry !== undefined) {
    explain(text, frame);
    lines.push(`# ${indent}${name}:`);
    renderKey(example, entry, { ...frame, path: `${path}.*`, indent: `${indent}  ` });
    return;
  }
  const value = defaultOf(schema);
  if (value === undefined) {
    explain(`${name}: ${text ?? ''} (no default)`.replace(':  (', ': ('), frame);
    return;
  }
  explain(text, frame);
  setting(stringify({ [name]: value.value }, { lineWidth: 0, flowCollectionPadding: false }), frame);
}

function renderKeys(schema: z.ZodObject, frame: Frame): void {
  for (const [name, part] of Object.entries(schema.shape)) renderKey(name, part, { ...frame, path: `${frame.path}.${name}` });
}

/** True for a part that may be omitted but has required values, so that none of its lines can be a default. */
function needsValues(schema: z.core.$ZodType, thing: z.ZodObject): boolean {
  if (!(schema instanceof z.ZodOptional)) return false;
  return Object.values(thing.shape).some((part) => !(part instanceof z.ZodOptional) && defaultOf(part) === undefined);
}

function explain(text: string | undefined, frame: Frame): void {
  if (text !== undefined) frame.lines.push(`## ${frame.indent}${text}`);
}

function setting(yaml: string, frame: Frame): void {
  for (const line of yaml.trimEnd().split('\n')) frame.lines.push(`# ${frame.indent}${line}`);
}
