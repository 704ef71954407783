import { RootConfig } from '../config-schema.ts';
import { renderTemplate } from '../kernel/config/template.ts';

const header = [
  'Configuration of Gatehouse.',
  '',
  'Everything below is commented out and shows the default (or an example, where there is none).',
  'Lines that begin with "##" explain; to change a setting, remove "# " from its line and from',
  'the lines above it that it belongs to. An unknown key or a bad value stops the start with its line.',
  'A value may hold ${NAME}: it is replaced by the environment variable NAME, or else by the secret of this name',
  '("gatehouse secrets set NAME"). $${NAME} stays as ${NAME}.',
];

/** Returns the config.yaml of a first start (decisions §9). */
export function configTemplate(): string {
  const text = renderTemplate(RootConfig, header, {
    names: { providers: 'local', agents: 'default' },
    values: {
      'gateway.tokens': [{ id: 'ops', secret: '${OPS_TOKEN}', scopes: ['*'] }],
      'providers.*.type': 'openai-compatible',
      'providers.*.baseUrl': 'http://127.0.0.1:8000/v1',
      'providers.*.apiKey': '${LOCAL_KEY}',
      'providers.*.models': [{ id: 'test-model', contextWindow: 128_000, maxTokens: 8192, cost: { input: 1, output: 2 } }],
      'agents.*.model': 'local/test-model',
      'observability.traces': { endpoint: 'http://127.0.0.1:4318/v1/traces', headers: {}, sampleRatio: 1 },
      embedding: { provider: 'local', model: 'text-embedding-3-small' },
    },
  });
  return `# yaml-language-server: $schema=config.schema.json\n${text}`;
}
