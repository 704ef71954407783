import schema from '@asyncapi/specs/schemas/3.0.0.json' with { type: 'json' };
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { asyncApiDocument } from './asyncapi.ts';
import { events } from './events.ts';
import { isJsonObject, type Json } from './json-schema.ts';

const document = asyncApiDocument({ version: '1.2.3', baseUrl: 'https://gate.example:4766' });
const plain: Json = JSON.parse(JSON.stringify(document));
/** The schema has its own copy of draft 7, and patterns older than the `u` flag; formats do not affect whether a document is valid. */
const validate = new Ajv({ strict: false, meta: false, validateSchema: false, validateFormats: false, unicodeRegExp: false }).compile(schema);

test('is an AsyncAPI 3.0 document', () => {
  validate(plain);
  expect(validate.errors ?? []).toEqual([]);
  expect(validate({ ...document, operations: { sendEvents: { action: 'shout', channel: { $ref: '#/channels/events' } } } })).toBe(false);
});

test('names every kind of event with its payload and who sees it', () => {
  const messages = document.channels['events']?.['messages'];
  expect(isJsonObject(messages) && Object.keys(messages).filter((key) => key !== 'gap' && key !== 'ping')).toEqual(
    Object.keys(events).map((kind) => kind.replaceAll(':', '.')),
  );
  expect(document.components.messages['event.message.sent']).toMatchObject({
    name: 'message:sent',
    'x-visibility': 'owner',
    tags: [{ name: 'Messages' }],
  });
});

test('says where the server listens', () => {
  expect(document.servers).toMatchObject({ http: { host: 'gate.example:4766', protocol: 'https' }, websocket: { protocol: 'wss' } });
});

test('every reference resolves', () => {
  const references = referencesIn(plain);
  expect(references.length).toBeGreaterThan(50);
  for (const reference of references) expect(resolve(reference), reference).toBeDefined();
});

function referencesIn(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner)));
}

function resolve(reference: string): Json | undefined {
  let found: Json | undefined = plain;
  for (const part of reference.replace('#/', '').split('/')) found = isJsonObject(found) ? found[part] : undefined;
  return found;
}
