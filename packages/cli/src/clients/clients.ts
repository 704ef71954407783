import { join } from 'node:path';
import type { Access, ClientEnvironment, ConnectedClient, OfferedModel } from './client.ts';

const v1 = ({ url }: Access): string => `${url}/v1`;
const bearer = ({ secret }: Access): string => `Bearer ${secret}`;

/** Returns the folder named by a variable, or a default below the user's home. */
function folder({ env, userHome }: ClientEnvironment, variable: string, ...path: string[]): string {
  return env[variable] || join(userHome, ...path);
}

/** The clients that `gatehouse connect` supports; each row of docs/guide/clients.md is verified by a run. */
export const clients: readonly ConnectedClient[] = [
  {
    id: 'codex',
    title: 'Codex CLI',
    route: '/v1/responses',
    bringsTools: true,
    takesMcp: true,
    start: 'codex',
    files: (access, environment) => [
      {
        file: join(folder(environment, 'CODEX_HOME', '.codex'), 'config.toml'),
        format: 'toml',
        values: {
          model: access.model,
          model_provider: 'gatehouse',
          // A tool that OpenAI's servers run; this gateway has none.
          web_search: 'disabled',
          model_providers: {
            gatehouse: { name: 'Gatehouse', base_url: v1(access), wire_api: 'responses', experimental_bearer_token: access.secret },
          },
          mcp_servers: { gatehouse: access.mcp ? { url: `${access.url}/mcp`, http_headers: { Authorization: bearer(access) } } : undefined },
        },
      },
    ],
  },
  {
    id: 'opencode',
    title: 'opencode',
    route: '/v1/chat/completions',
    bringsTools: true,
    takesMcp: true,
    start: 'opencode',
    files: (access, environment) => [
      {
        file: join(folder(environment, 'XDG_CONFIG_HOME', '.config'), 'opencode', 'opencode.json'),
        format: 'json',
        initial: { $schema: 'https://opencode.ai/config.json' },
        values: {
          provider: {
            gatehouse: {
              npm: '@ai-sdk/openai-compatible',
              name: 'Gatehouse',
              options: { baseURL: v1(access), apiKey: access.secret },
              models: Object.fromEntries(access.models.map((model) => [model.id, { name: model.id, ...openCodeLimit(model) }])),
            },
          },
          model: `gatehouse/${access.model}`,
          mcp: {
            gatehouse: access.mcp
              ? { type: 'remote', url: `${access.url}/mcp`, headers: { Authorization: bearer(access) }, oauth: false }
              : undefined,
          },
        },
      },
    ],
  },
  {
    id: 'continue',
    title: 'Continue',
    route: '/v1/chat/completions',
    bringsTools: true,
    start: 'cn',
    files: (access, environment) => [
      {
        file: join(folder(environment, 'CONTINUE_GLOBAL_DIR', '.continue'), 'config.yaml'),
        format: 'yaml',
        initial: { name: 'Gatehouse', version: '1.0.0', schema: 'v1' },
        values: {
          models: chosenFirst(access).map(({ id }) => ({
            name: `gatehouse ${id}`,
            provider: 'openai',
            model: id,
            apiBase: v1(access),
            apiKey: access.secret,
            useResponsesApi: false,
            roles: ['chat', 'edit', 'apply'],
            capabilities: ['tool_use'],
          })),
        },
      },
    ],
  },
  {
    id: 'cline',
    title: 'Cline',
    route: '/v1/chat/completions',
    bringsTools: true,
    start: 'cline -P openai-compatible',
    files: (access, environment) => [
      {
        file: join(environment.userHome, '.cline', 'data', 'settings', 'providers.json'),
        format: 'json',
        initial: { version: 1, modes: {} },
        values: {
          lastUsedProvider: 'openai-compatible',
          providers: {
            'openai-compatible': {
              settings: { provider: 'openai-compatible', apiKey: access.secret, model: access.model, baseUrl: v1(access) },
              tokenSource: 'manual',
              updatedAt: '2026-01-01T00:00:00.000Z',
            },
          },
        },
      },
    ],
  },
  {
    id: 'qwen-code',
    title: 'Qwen Code',
    route: '/v1/chat/completions',
    bringsTools: true,
    start: 'qwen',
    files: (access, environment) => [
      {
        file: join(folder(environment, 'QWEN_HOME', '.qwen'), 'settings.json'),
        format: 'json',
        values: {
          security: { auth: { selectedType: 'openai', apiKey: access.secret, baseUrl: v1(access) } },
          model: { name: access.model },
        },
      },
    ],
  },
  {
    id: 'pi',
    title: 'pi',
    route: '/v1/chat/completions',
    bringsTools: true,
    start: 'pi',
    files(access, environment) {
      const dir = folder(environment, 'PI_CODING_AGENT_DIR', '.pi', 'agent');
      return [
        {
          file: join(dir, 'models.json'),
          format: 'json',
          values: {
            providers: {
              gatehouse: { baseUrl: v1(access), api: 'openai-completions', apiKey: access.secret, models: access.models.map(piModel) },
            },
          },
        },
        { file: join(dir, 'settings.json'), format: 'json', values: { defaultProvider: 'gatehouse', defaultModel: access.model } },
      ];
    },
  },
  {
    id: 'claude-code',
    title: 'Claude Code',
    route: '/v1/messages',
    bringsTools: true,
    start: 'claude',
    env: claudeEnv,
    files: (access, environment) => [
      { file: join(folder(environment, 'CLAUDE_CONFIG_DIR', '.claude'), 'settings.json'), format: 'json', values: { env: claudeEnv(access) } },
    ],
  },
  {
    id: 'openai',
    title: 'OpenAI SDK',
    route: '/v1/chat/completions',
    bringsTools: false,
    start: 'new OpenAI() reads both variables; pass the model by name',
    env: openAiEnv,
  },
  {
    id: 'openai-agents',
    title: 'OpenAI Agents SDK',
    route: '/v1/responses',
    bringsTools: true,
    start: 'new Agent({…}) reads these variables',
    env: (access) => ({ ...openAiEnv(access), OPENAI_DEFAULT_MODEL: access.model, OPENAI_AGENTS_DISABLE_TRACING: '1' }),
  },
];

function openAiEnv(access: Access): Record<string, string> {
  return { OPENAI_BASE_URL: v1(access), OPENAI_API_KEY: access.secret };
}

/** Includes the aliases that Claude Code uses for small tasks and sub-agents. */
function claudeEnv({ url, secret, model }: Access): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: secret,
    ANTHROPIC_MODEL: model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
  };
}

/** Puts the default model first, because Continue starts with the first one. */
function chosenFirst({ model, models }: Access): OfferedModel[] {
  return models.toSorted((a, b) => Number(b.id === model) - Number(a.id === model));
}

function openCodeLimit({ contextWindow, maxTokens }: OfferedModel): object {
  return contextWindow === undefined || maxTokens === undefined ? {} : { limit: { context: contextWindow, output: maxTokens } };
}

function piModel({ id, contextWindow, maxTokens, input }: OfferedModel): object {
  const reads = input?.filter((kind) => kind === 'text' || kind === 'image');
  return {
    id,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(reads !== undefined && { input: reads }),
  };
}
