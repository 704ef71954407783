import http from 'node:http';
import { type Route, type RouteName, routes } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GatewayConfig } from './config.ts';
import { startGateway, testTokens } from './testing/gateway-fixture.ts';

const app = 'https://app.example';
let fixture: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  fixture = await startGateway({ config: { corsOrigins: [app] } });
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Not `fetch`, which cannot set an Origin. Resolves with the response headers. */
function ask(method: string, path: string, headers: Readonly<Record<string, string>>, { port } = fixture): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    http
      .request({ host: '127.0.0.1', port, method, path, headers: { host: `localhost:${port}`, ...headers }, agent: false }, (incoming) => {
        incoming.on('error', () => {});
        incoming.resume();
        resolve(incoming);
      })
      .on('error', reject)
      .end();
  });
}

const all = (Object.entries(routes) as [RouteName, Route][]).map(([name, route]): [RouteName, Route, string] => [
  name,
  route,
  route.path.replaceAll(/[:*]\w+/g, 'x'),
]);

describe.each(all)('%s', (_name, route, path) => {
  it('answers a preflight without a token, naming the methods of the path and the headers that were asked for', async () => {
    const { statusCode, headers } = await ask('OPTIONS', path, {
      origin: app,
      'access-control-request-method': route.method,
      'access-control-request-headers': 'authorization,content-type,idempotency-key,last-event-id',
    });
    expect(statusCode).toBe(204);
    expect(headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-allow-headers': 'authorization,content-type,idempotency-key,last-event-id',
      vary: 'origin, access-control-request-headers',
    });
    expect(headers['access-control-allow-methods']?.split(', ')).toContain(route.method);
    expect(headers['access-control-allow-credentials']).toBeUndefined();
  });

  it('lets the page read refusals as well', async () => {
    for (const authorization of ['Bearer of-nobody-in-particular', `Bearer ${testTokens.mcp}`]) {
      const { headers } = await ask(route.method, path, { origin: app, authorization });
      expect(headers['access-control-allow-origin']).toBe(app);
      expect(headers['access-control-expose-headers']).toContain('x-request-id');
      expect(headers.vary).toMatch(/^origin(, |$)/);
    }
  });

  it('marks the response as dependent on the origin for caches, and returns nothing to other pages', async () => {
    const plain = await ask(route.method, path, {});
    expect(plain.headers.vary).toMatch(/^origin(, |$)/);
    expect(plain.headers['access-control-allow-origin']).toBeUndefined();
    const foreign = await ask('OPTIONS', path, { origin: 'https://evil.example', 'access-control-request-method': route.method });
    expect([foreign.statusCode, foreign.headers['access-control-allow-origin']]).toEqual([403, undefined]);
  });
});

it('streams carry the headers too', async () => {
  // The wrong tokens of the tests above count against this address.
  await using own = await startGateway({ config: { corsOrigins: ['https://other.example/'] } });
  const { statusCode, headers } = await ask(
    'GET',
    '/api/events',
    { origin: 'https://other.example', authorization: `Bearer ${testTokens.rpc}` },
    own,
  );
  expect([statusCode, headers['content-type'], headers['access-control-allow-origin']]).toEqual([
    200,
    expect.stringContaining('text/event-stream'),
    'https://other.example',
  ]);
});

it.each(['*', 'https://*.example.org', 'app.example', 'https://app.example/path', ''])('refuses %j as a configured origin', (origin) => {
  expect(() => GatewayConfig.parse({ corsOrigins: [origin] })).toThrow(/expected an origin such as/);
});
