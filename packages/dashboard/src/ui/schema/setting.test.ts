import { describe, expect, test } from 'vitest';
import { findableSettings, searchSettings, shownId } from '../../pages/settings/search-settings.ts';
import { createLookup } from './schema.ts';
import { childSettings, entrySetting, settingOf, titleOf } from './setting.ts';

const lookup = createLookup({ Level: { type: 'string', enum: ['info', 'debug'] } });
const schema = {
  type: 'object',
  properties: {
    logging: {
      type: 'object',
      description: 'The log.',
      'x-gatehouse-apply': 'live',
      properties: {
        level: { $ref: '#/$defs/Level', default: 'info' },
        modules: { type: 'object', additionalProperties: { $ref: '#/$defs/Level' }, description: 'Level per module.' },
      },
    },
    providers: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: { apiKey: { type: 'string' }, timeoutMs: { type: 'integer', minimum: 1, description: 'Deadline of a call.' } },
        required: ['apiKey'],
      },
    },
  },
};
const sections = childSettings(settingOf([], schema, lookup), lookup);

describe('the settings of a schema', () => {
  test('pass on what holds for all keys below them', () => {
    const [logging, providers] = sections;
    expect(logging).toMatchObject({ id: 'logging', title: 'Logging', apply: 'live', shape: { kind: 'object' } });
    expect(logging && childSettings(logging, lookup)).toMatchObject([
      { id: 'logging.level', apply: 'live', default: 'info', shape: { kind: 'choice', options: ['info', 'debug'] } },
      { id: 'logging.modules', apply: 'live', shape: { kind: 'record' } },
    ]);
    const entry = providers && entrySetting(providers, 'open.ai', lookup);
    expect(entry).toMatchObject({ id: 'providers["open.ai"]', title: 'open.ai', apply: 'restart', isEntry: true, keep: 0 });
    expect(entry && childSettings(entry, lookup)).toMatchObject([
      { id: 'providers["open.ai"].apiKey', required: true, secret: true, keep: 2 },
      { id: 'providers["open.ai"].timeoutMs', title: 'Timeout', unit: 'ms', required: false, secret: false, keep: 2 },
    ]);
  });

  test('have titles that people read', () => {
    expect(['turnTimeoutMs', 'baseUrl', 'perDayUsd', 'wsMaxInFlight', 'maxFileBytes', 'corsOrigins'].map((name) => titleOf(name).title)).toEqual([
      'Turn timeout',
      'Base URL',
      'Per day USD',
      'Ws max in flight',
      'Max file',
      'CORS origins',
    ]);
  });
});

describe('the search', () => {
  const findable = findableSettings(sections, lookup);
  const idsOf = (query: string, document: unknown = {}) => {
    const { settings, entries } = searchSettings(findable, document, query);
    return [...entries.map(({ record, key }) => `${record.id}: ${key}`), ...settings.map(({ setting }) => shownId(setting))];
  };

  test('finds keys by title, path and description, names first, and keys of entries once', () => {
    expect(idsOf('level')).toEqual(['logging.level', 'logging.modules']);
    expect(idsOf('deadline call')).toEqual(['providers.*.timeoutMs']);
    expect(idsOf('providers.*.api')).toEqual(['providers.*.apiKey']);
    expect(idsOf('nothing')).toEqual([]);
    expect(idsOf(' ')).toEqual([]);
  });

  test('finds entries by their name', () => {
    expect(idsOf('local', { providers: { local: {}, other: {} } })).toEqual(['providers: local']);
  });
});
