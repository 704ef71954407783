import type { MetricRegistry } from '../../../kernel/metrics.ts';

const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const turnSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Declares what is counted as it happens. Labels are names of the configuration and of closed lists: never a token, a conversation or a caller. */
export function createInstruments(registry: MetricRegistry) {
  return {
    requests: registry.counter('gatehouse_http_requests_total', 'HTTP requests by declared route and class of status.', [
      'route',
      'method',
      'status',
    ]),
    requestTime: registry.histogram(
      'gatehouse_http_request_duration_seconds',
      'From the first byte of a request to the last of its answer; streams included.',
      ['family'],
      requestSeconds,
    ),
    calls: registry.counter('gatehouse_rpc_calls_total', 'JSON-RPC calls by method and outcome (ok or the code of the error).', [
      'method',
      'outcome',
    ]),
    callTime: registry.histogram('gatehouse_rpc_call_duration_seconds', 'JSON-RPC calls, over both transports.', [], requestSeconds),
    errors: registry.counter('gatehouse_errors_total', 'Requests and handshakes that ended with an error, by its code.', ['door', 'code']),
    wrongSecrets: registry.counter('gatehouse_auth_failures_total', 'Secrets presented that belong to no token.', [])(),
    limited: registry.counter('gatehouse_rate_limited_total', 'Requests and calls refused by the rate limiter.', [])(),
    turns: registry.counter('gatehouse_turns_total', 'Turns of agents by how they ended.', ['agent', 'origin', 'outcome']),
    turnTime: registry.histogram('gatehouse_turn_duration_seconds', 'Turns of agents, without waiting in a queue.', ['agent'], turnSeconds),
    modelCalls: registry.counter('gatehouse_model_calls_total', 'Calls of models, retries and fallbacks each counted.', [
      'provider',
      'model',
      'outcome',
    ]),
    modelTime: registry.histogram('gatehouse_model_call_duration_seconds', 'Calls of models.', ['provider', 'model'], turnSeconds),
    tokens: registry.counter('gatehouse_model_tokens_total', 'Tokens of model calls; input includes cached tokens.', [
      'provider',
      'model',
      'agent',
      'type',
    ]),
    cost: registry.counter('gatehouse_model_cost_dollars_total', 'Cost of model calls whose price is known, in US dollars.', [
      'provider',
      'model',
      'agent',
    ]),
    toolCalls: registry.counter('gatehouse_tool_calls_total', 'Tools that ran.', ['tool', 'outcome']),
    writes: registry.counter('gatehouse_storage_writes_total', 'Operations sent to the database.', ['operation']),
    announced: registry.counter('gatehouse_events_total', 'Events about the health of the daemon.', ['kind']),
  };
}
