import { errorCatalogue } from './errors.ts';
import type { EventDeclaration } from './event.ts';
import { events } from './events.ts';
import { routes, type Route } from './http/routes.ts';
import { createSchemaWriter, isJsonObject, type Json, type JsonObject, type SchemaUse } from './json-schema.ts';
import { errorStatuses, type OpenApiDocument } from './openapi.ts';
import type { OpenRpcDocument, OpenRpcMethod } from './openrpc.ts';
import { scopeWords } from './scopes.ts';
import { resolveSchema, schemaRows, type SchemaLookup, type SchemaRow, typeText } from './schema-text.ts';

const notice = '<!-- Made by tools/gen.ts from the contract. Change the contract, then run `npm run gen`. -->';

/** `docs/reference/rpc.md`: every method with parameters, result, errors and examples. */
export function rpcReference(document: OpenRpcDocument): string {
  const lookup: SchemaLookup = (name) => document.components.schemas[name];
  const namespaces = Map.groupBy(document.methods, (one) => one.tags[0]?.name ?? '');
  return page('JSON-RPC methods', [
    'JSON-RPC 2.0 by `POST /rpc` (one request or a batch of at most 50) and over the WebSocket `/ws`. Parameters are given by name; an unknown one is refused with -32602. Every call may also fail as listed in [errors.md](errors.md). Times are milliseconds since the Unix epoch unless a field says otherwise.',
    ...[...namespaces].flatMap(([namespace, methods]) => [`## ${namespace}`, ...methods.flatMap((one) => methodSection(one, lookup))]),
    '## Shared shapes',
    ...shapeSections(document.components.schemas),
  ]);
}

function methodSection(one: OpenRpcMethod, lookup: SchemaLookup): string[] {
  const params: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(one.params.map((param) => [param.name, param.schema])),
    required: one.params.filter((param) => param.required === true).map((param) => param.name),
  };
  return [
    `### \`${one.name}\``,
    one.summary,
    `Scope \`${one['x-scope']}\`, ${one['x-risk']}, since ${one['x-since']}.`,
    ...(one.description === undefined ? [] : [one.description]),
    ...(one.params.length === 0 ? ['No parameters.'] : ['Parameters:', propertyTable(params, lookup, true)]),
    ...resultSection(one.result.schema, lookup),
    `Errors of its own or of every call: ${one.errors.map(({ $ref }) => `\`${lastPart($ref)}\``).join(', ')}.`,
    ...one.examples.flatMap((example) => [
      fence({ method: one.name, params: Object.fromEntries(example.params.map(({ name, value }) => [name, value])) }),
      fence({ result: example.result.value }),
    ]),
  ];
}

function resultSection(schema: JsonObject, lookup: SchemaLookup): string[] {
  const { anyOf } = schema;
  if (Array.isArray(anyOf))
    return anyOf.filter(isJsonObject).flatMap((choice, index) => [`Result, form ${index + 1}:`, propertyTable(choice, lookup, false)]);
  if (typeof schema['$ref'] === 'string') return [`Result: ${shapeLink(lastPart(schema['$ref']))}.`];
  const rows = schemaRows(schema, { lookup, openReferences: false });
  return rows.length === 0 ? ['Result: an object.'] : ['Result:', propertyTable(schema, lookup, false)];
}

/** `docs/reference/http.md`: every route with access, shapes and statuses. */
export function httpReference(document: OpenApiDocument): string {
  const lookup: SchemaLookup = (name) => document.components.schemas[name];
  return page('HTTP routes', [
    'What is not listed is a 404. Every reply carries `x-request-id`; a 429 carries `Retry-After` in seconds. The machine-readable form is [openapi.json](openapi.json).',
    ...document.tags.flatMap((tag) => [
      `## Family \`${tag.name}\``,
      tag.description,
      ...Object.values<Route>(routes)
        .filter((route) => route.family === tag.name)
        .flatMap((route) => routeSection(route, document, lookup)),
    ]),
    '## Shared shapes',
    ...shapeSections(document.components.schemas),
  ]);
}

function routeSection(route: Route, document: OpenApiDocument, lookup: SchemaLookup): string[] {
  const described = document.paths[route.path.replaceAll(/[:*]([A-Za-z]+)/g, '{$1}')]?.[route.method.toLowerCase()] ?? {};
  const access = route.scope === 'none' ? 'No token needed' : `Scope ${scopeWords(route.scope).replaceAll("'", '`')}`;
  return [
    `### \`${route.method} ${route.path}\``,
    route.summary,
    `${access}; ${route.rateLimited ? 'rate limited' : 'not rate limited'}. Failures: ${errorStatuses(route).join(', ')}.`,
    ...Object.entries(route.query ?? {}).map(([name, text]) => `Query \`${name}\`: ${text}`),
    ...bodyLines('Body', at(described, 'requestBody', 'content', 'application/json', 'schema'), lookup),
    ...bodyLines('Answer', at(described, 'responses', '200', 'content', 'application/json', 'schema'), lookup),
    ...bodyLines('Each data line of the event stream', at(described, 'responses', '200', 'content', 'text/event-stream', 'x-event'), lookup),
  ];
}

function bodyLines(title: string, schema: Json | undefined, lookup: SchemaLookup): string[] {
  if (!isJsonObject(schema)) return [];
  const inline = schema['$ref'] === undefined && schemaRows(schema, { lookup, openReferences: false }).length > 0;
  return inline ? [`${title}:`, propertyTable(schema, lookup, false)] : [`${title}: ${cellText(typeText(schema, shapeLink))}.`];
}

/** `docs/reference/events.md`: every event kind with its payload. */
export function eventsReference(): string {
  const declared = Object.entries<EventDeclaration>(events);
  const uses = declared.map(([, one]): SchemaUse => ({ schema: one.payload, side: 'output' }));
  const writer = createSchemaWriter(uses, { target: 'draft-2020-12', refPrefix: '#/' });
  const shapes = writer.components();
  const lookup: SchemaLookup = (name) => shapes[name];
  const categories = Map.groupBy(declared, ([, one]) => one.category);
  return page('Events', [
    'Who sees an event: `owner` is the principal whose conversation it is about, and admins; `system` is every token that may open the stream; `admin` is admins only. A token that names agents sees nothing of others.',
    'Transient kinds are made only while somebody listens; they have no id, are not kept and never replayed. All others are kept for 7 days, at most 50,000 of them or 32 million characters; the messages of `/v1` turns only in memory.',
    ...[...categories].flatMap(([category, list]) => [
      `## ${category}`,
      ...list.flatMap(([kind, one]) => [
        `### \`${kind}\``,
        one.summary,
        `Visible to: ${one.visibility}.${one.transient === true ? ' Transient.' : ''}`,
        propertyTable(writer.schema({ schema: one.payload, side: 'output' }), lookup, false),
      ]),
    ]),
    '## Shared shapes',
    ...shapeSections(shapes),
  ]);
}

/** `docs/reference/errors.md`: the closed catalogue in the three shapes it leaves by. */
export function errorsReference(): string {
  const rows = Object.entries(errorCatalogue).map(([code, entry]) => [
    `\`${code}\``,
    String(entry.rpc),
    String(entry.http),
    `\`${entry.v1}\``,
    entry.retryable ? 'yes' : 'no',
    entry.text,
  ]);
  return page('Errors', [
    'One catalogue; each door gives a failure its own shape.',
    [
      '- JSON-RPC: `{jsonrpc, error: {code, message, data}, id}` with the number below, `data.code` the code below and `data.issues[{path, message}]`, `data.retryAfterMs`, `data.requestId` where they apply.',
      '- `/v1`: `{error: {message, type, param, code: null}}` with the status and type below.',
      '- Other routes: `{error, code, requestId}` with the status and code below.',
    ].join('\n'),
    table(['Code', 'JSON-RPC', 'HTTP', '`/v1` type', 'Retry helps', 'Meaning'], rows),
  ]);
}

/** `docs/reference/config.md` from the JSON Schema of config.yaml (its input side, shared shapes under `$defs`). */
export function configReference(schema: JsonObject): string {
  const shared = isJsonObject(schema['$defs']) ? schema['$defs'] : {};
  const lookup: SchemaLookup = (name) => {
    const found = shared[name];
    return isJsonObject(found) ? found : undefined;
  };
  const sections = isJsonObject(schema['properties']) ? schema['properties'] : {};
  return page('Configuration', [
    'The keys of `config.yaml` in the home folder. Every key may be left out. An unknown key or a wrong value stops the start and is named with its line. `"${NAME}"` takes a value from the environment.',
    ...Object.entries(sections).flatMap(([name, section]) => {
      if (!isJsonObject(section)) return [];
      const resolved = resolveSchema(section, lookup).schema;
      const rows = schemaRows(resolved, { lookup, openReferences: true }, `${name}.`);
      return [
        `## \`${name}\``,
        ...(typeof resolved['description'] === 'string' ? [resolved['description']] : []),
        ...(rows.length === 0 ? [] : [configTable(rows, lookup)]),
      ];
    }),
  ]);
}

function configTable(rows: readonly SchemaRow[], lookup: SchemaLookup): string {
  const spelledOut = (name: string): string => typeText(lookup(name) ?? {}, spelledOut);
  return table(
    ['Key', 'Type', 'Default', 'Meaning'],
    rows.map((row) => [
      `\`${row.path}\``,
      typeText(row.schema, spelledOut) + (row.required ? ', required' : ''),
      defaultText(row.schema),
      describe(row.schema) + (row.schema['secret'] === true ? ' Secret: redacted in every view.' : ''),
    ]),
  );
}

/** `docs/reference/exit-codes.md`: what a process says when it ends. */
export function exitCodesReference(
  groups: readonly { readonly title: string; readonly codes: readonly { readonly code: number; readonly text: string }[] }[],
): string {
  return page(
    'Exit codes',
    groups.flatMap(({ title, codes }) => [
      `## ${title}`,
      table(
        ['Code', 'Meaning'],
        codes.map(({ code, text }) => [String(code), text]),
      ),
    ]),
  );
}

function propertyTable(schema: JsonObject, lookup: SchemaLookup, forInput: boolean): string {
  const rows = schemaRows(schema, { lookup, openReferences: false });
  return table(
    forInput ? ['Name', 'Type', 'Required', 'Default', 'Meaning'] : ['Name', 'Type', 'Always there', 'Meaning'],
    rows.map((row) => [
      `\`${row.path}\``,
      row.reference === undefined ? typeText(row.schema, shapeLink) : shapeLink(row.reference),
      row.required ? 'yes' : 'no',
      ...(forInput ? [defaultText(row.schema)] : []),
      row.reference === undefined ? describe(row.schema) : ownDescription(row, lookup),
    ]),
  );
}

/** A shared shape is described under its own heading; beside a reference only words of the place are shown. */
function ownDescription(row: SchemaRow, lookup: SchemaLookup): string {
  const words = describe(row.schema);
  const shape = row.reference === undefined ? undefined : lookup(row.reference);
  return shape !== undefined && words === describe(shape) ? '' : words;
}

function shapeSections(shapes: Readonly<Record<string, JsonObject>>): string[] {
  const lookup: SchemaLookup = (name) => shapes[name];
  return Object.entries(shapes).flatMap(([name, schema]) => {
    const rows = schemaRows(schema, { lookup, openReferences: false });
    const pattern = typeof schema['pattern'] === 'string' ? `, matching \`${schema['pattern']}\`` : '';
    return [
      `### ${name}`,
      ...(describe(schema) === '' ? [] : [describe(schema)]),
      rows.length === 0 ? `${sentence(typeText(schema, shapeLink) + pattern)}` : propertyTable(schema, lookup, true),
    ];
  });
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function shapeLink(name: string): string {
  return `[${name}](#${name.toLowerCase()})`;
}

function describe(schema: JsonObject): string {
  return typeof schema['description'] === 'string' ? schema['description'] : '';
}

function defaultText(schema: JsonObject): string {
  return 'default' in schema ? `\`${JSON.stringify(schema['default'])}\`` : '';
}

function at(value: Json, ...path: readonly string[]): Json | undefined {
  let found: Json | undefined = value;
  for (const key of path) found = isJsonObject(found) ? found[key] : undefined;
  return found;
}

function lastPart(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

function page(title: string, blocks: readonly string[]): string {
  return `${[notice, `# ${title}`, ...blocks].join('\n\n')}\n`;
}

function fence(value: Json): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cellText).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function cellText(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
