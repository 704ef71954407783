// Started by the conformance suite with the address of its server: adds it to the daemon that the test shares among scenarios, and
// authorizes it as a person with a browser would, as often as the server asks, at most three times.
import * as z from 'zod';
import { rpcCall } from '../../proving/lib/rpc.ts';
import { askForCall } from '../../proving/lib/provider.ts';
import { eventually } from './product.ts';

const maxAuthorizations = 3;
const Environment = z.object({ DRIVER_PORT: z.coerce.number(), DRIVER_TOKEN: z.string(), MCP_CONFORMANCE_SCENARIO: z.string() });
const Context = z.object({ client_id: z.string().optional(), client_secret: z.string().optional() });
const Status = z.object({
  status: z.string(),
  error: z.string().optional(),
  tools: z.array(z.object({ callableName: z.string() })),
  authorization: z.object({ nextStep: z.string().optional() }).optional(),
});
const Begun = z.object({ authorizationUrl: z.string() });

const { DRIVER_PORT: port, DRIVER_TOKEN: token, MCP_CONFORMANCE_SCENARIO: scenario } = Environment.parse(process.env);
const call = (method: string, params: object) => rpcCall({ port, token }, method, params);
const url = process.argv.at(-1) ?? '';
const name = scenario
  .replaceAll(/[^a-z0-9]+/gi, '-')
  .slice(-32)
  .replace(/^-/, '');
const { client_id: given, client_secret: clientSecret } = Context.parse(JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}'));
// The address of a metadata document is a client id that the operator configures.
const clientId = scenario === 'auth/basic-cimd' ? 'https://conformance-test.local/client-metadata.json' : given;

const oauth = { allowPrivate: true, ...(clientId !== undefined && { clientId }), ...(clientSecret !== undefined && { clientSecret }) };
const server = { transport: 'http', url, allowPrivate: true, oauth };
await call('config.patch', { section: 'mcp', value: { servers: { [name]: server } } });
const status = async () => Status.parse(await call('mcp.status', { name }));

async function settle(): Promise<z.output<typeof Status>> {
  let now = await status();
  await eventually(async () => ((now = await status()), now.status === 'connected' || now.status === 'needs_authorization'), 5_000);
  return now;
}

async function authorize(): Promise<void> {
  const { authorizationUrl } = Begun.parse(await call('mcp.authorize', { name }));
  const answer = await fetch(authorizationUrl, { redirect: 'manual' });
  await fetch(answer.headers.get('location') ?? '');
}

for (let attempts = 0; attempts <= maxAuthorizations; attempts += 1) {
  const { tools, authorization, error } = await settle();
  if (authorization?.nextStep === undefined) {
    for (const { callableName } of tools)
      await call('agent.execute', { message: askForCall(callableName, { a: 5, b: 3 }), sessionKey: `${name}:${attempts}` });
    if ((await status()).authorization?.nextStep === undefined) break;
  }
  if (attempts === maxAuthorizations) throw new Error(error ?? 'the server still asks for authorization');
  await authorize();
}
