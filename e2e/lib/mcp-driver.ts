// Started by the conformance suite with the address of its server: runs a daemon that connects to it, and a turn for each of its tools.
import { startProduct } from './product.ts';

/** Arguments with which a scripted model calls a tool. */
const argumentsOf: Readonly<Record<string, object>> = { add_numbers: { a: 5, b: 3 } };

const url = process.argv.at(-1) ?? '';
await using product = await startProduct({
  config: {
    mcp: { servers: { suite: { transport: 'http', url, allowPrivate: true, enabled: false } } },
    agents: { default: { model: 'local/test-model', tools: { profile: 'none', allow: ['group:mcp'] } } },
  },
});
const { tools } = (await product.call('mcp.connect', { name: 'suite' })) as { tools: string[] };
for (const tool of tools) {
  const call = { id: 'call_1', name: `mcp__suite--${tool}`, arguments: JSON.stringify(argumentsOf[tool] ?? {}) };
  product.provider.queue({ toolCalls: [call] }, { text: 'Thank you.' });
  await product.call('agent.execute', { message: 'Please', sessionKey: `suite:${tool}` });
}
