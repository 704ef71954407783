import { t } from '../../language.ts';
import type { OpenApiDocument } from '@gatehouse/contract';
import { isSchema, type Lookup, type Schema } from '../../ui/schema/schema.ts';
import type { SampleRequest } from './samples.ts';

export interface RouteParameter {
  readonly name: string;
  /** `path`, `query`, `header`, or `body` for a field of a JSON body. */
  readonly place: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** A route of the OpenAPI document, as it is shown. */
export interface ShownRoute {
  readonly id: string;
  readonly family: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  /** `none` when no token is needed. */
  readonly scope: string;
  readonly parameters: readonly RouteParameter[];
  readonly answers: readonly { readonly status: string; readonly description: string }[];
  /** Absent for WebSockets, and for routes that other programs sign. */
  readonly sample?: Omit<SampleRequest, 'url'>;
}

/** Routes that only browsers use. */
const hidden: ReadonlySet<string> = new Set(['dashboard', 'dashboardAsset', 'dashboardFrame', 'oauthCallback']);

/** Returns the routes of a document by their families, in its order. */
export function routesOf(document: OpenApiDocument, lookup: Lookup): readonly ShownRoute[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const id = textOf(operation['operationId']);
      return hidden.has(id) ? [] : [routeOf(id, method.toUpperCase(), path, operation, lookup)];
    }),
  );
}

function routeOf(id: string, method: string, path: string, operation: Schema, lookup: Lookup): ShownRoute {
  const named = asList(operation['parameters']);
  const content = asSchema(asSchema(operation['requestBody'])['content']);
  const body = asSchema(content['application/json']);
  const answers = Object.entries(asSchema(operation['responses'])).map(([status, answer]) => ({ status, answer: asSchema(answer) }));
  const success = answers.find(({ status }) => status.startsWith('2'))?.answer;
  const scope = textOf(operation['x-scope']);
  const isSigned = isSchema(body['schema']) && body['example'] === undefined;
  return {
    id,
    family: textOf(asTexts(operation['tags'])[0]),
    method,
    path,
    summary: textOf(operation['summary']),
    scope,
    parameters: [
      ...named.map((one) => parameterOf(textOf(one['name']), textOf(one['in']), one['required'] === true, one, asSchema(one['schema']), lookup)),
      ...fieldsOf(asSchema(body['schema']), lookup),
    ],
    answers: answers.map(({ status, answer }) => ({ status, description: textOf(answer['description']) })),
    ...(success !== undefined &&
      !isSigned && {
        sample: {
          method,
          ...(body['example'] !== undefined && { body: body['example'] }),
          ...('multipart/form-data' in content && { file: id === 'transcriptions' ? 'recording.ogg' : 'notes.txt' }),
          ...(!('application/json' in asSchema(success['content'])) && { raw: true }),
          ...(scope === 'none' && { open: true }),
        },
      }),
  };
}

/** Returns the fields of a body; of alternatives those of the first. */
function fieldsOf(schema: Schema, lookup: Lookup): readonly RouteParameter[] {
  const whole = lookup(schema);
  const { properties, required } = lookup(asList(whole['anyOf'])[0] ?? whole);
  const needed = new Set(asTexts(required));
  return Object.entries(asSchema(properties)).map(([name, one]) => parameterOf(name, 'body', needed.has(name), lookup(one), lookup(one), lookup));
}

function parameterOf(name: string, place: string, required: boolean, described: Schema, schema: Schema, lookup: Lookup): RouteParameter {
  return { name, place, required, type: typeOf(schema, lookup), description: textOf(described['description']) };
}

function typeOf(given: unknown, lookup: Lookup): string {
  const schema = lookup(given);
  const { type, enum: values, const: only } = schema;
  const alternatives = asList(schema['anyOf']);
  if (alternatives.length > 0) return [...new Set(alternatives.map((one) => typeOf(one, lookup)))].join(' or ');
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(values)) return values.map((one) => JSON.stringify(one)).join(' | ');
  if (type === 'array') return t('list of {schema}', { schema: typeOf(schema['items'], lookup) });
  return typeof type === 'string' ? type : Array.isArray(type) ? type.join(' or ') : 'any';
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const asSchema = (value: unknown): Schema => (isSchema(value) ? value : {});
const asList = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : []);
const asTexts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);
