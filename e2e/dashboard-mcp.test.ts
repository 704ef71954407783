import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type McpTestServer, startMcpHttpServer } from '../packages/server/src/features/agents/mcp/testing/http-server.ts';
import { protect } from '../packages/server/src/features/agents/mcp/testing/protect.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../packages/testkit/src/authorization-server.ts';
import { logOf } from '../proving/lib/daemon.ts';
import { findingsInBothSchemes } from './lib/axe.ts';
import { type Browser, chromiumPath, startBrowser } from './lib/browser.ts';
import { logInTo } from './lib/dashboard.ts';
import { type Product, startProduct } from './lib/product.ts';

describe.skipIf(chromiumPath === undefined)('an MCP server that asks a person to sign in', () => {
  let product: Product;
  let browser: Browser;
  let mcp: McpTestServer;
  let issuer: AuthorizationServer;

  beforeAll(async () => {
    [mcp, issuer, browser] = await Promise.all([startMcpHttpServer(), startAuthorizationServer(), startBrowser()]);
    protect(mcp, issuer);
    const server = { transport: 'http', url: mcp.url, allowPrivate: true, oauth: { allowPrivate: true } };
    product = await startProduct({ config: { mcp: { servers: { tickets: server } } } });
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await product?.[Symbol.asyncDispose]();
    await mcp?.stop();
    await issuer?.[Symbol.asyncDispose]();
  });

  test('is authorized in the dashboard, in another tab, and no secret reaches the page, the log or the home folder', async () => {
    await using session = await logInTo(product, browser, product.token);
    const { page, context, complaints } = session;
    await page.goto(`${product.url}/agents/default/mcp`);
    await page.getByText('needs authorization', { exact: true }).waitFor();
    await page.getByText('run `gatehouse mcp authorize tickets`').waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    await page.getByRole('button', { name: 'Authorize tickets' }).click();
    const dialog = page.getByRole('dialog');
    const link = dialog.getByRole('link', { name: 'Sign in' });
    await link.waitFor();
    expect(await findingsInBothSchemes(page)).toEqual([]);
    const opened = context.waitForEvent('page');
    await link.click();
    const other = await opened;
    await other.getByRole('heading', { name: 'tickets is authorized' }).waitFor();
    expect(new URL(other.url()).pathname).toBe('/oauth/callback');
    const shown = await other.content();
    await other.close();
    await page.getByText('Connected tickets: 1 tool.').waitFor();
    await page.getByText('connected', { exact: true }).waitFor();
    expect(await product.call('mcp.status', { name: 'tickets' })).toMatchObject({ status: 'connected', authorization: { state: 'authorized' } });
    // The check of accessibility adds a style.
    expect(complaints.filter((one) => !one.startsWith('Applying inline style'))).toEqual([]);
    await product.restart();
    const texts = [shown, await page.content(), logOf(product.daemon)];
    for (const file of await readdir(product.home, { recursive: true, withFileTypes: true }))
      if (file.isFile()) texts.push(await readFile(join(file.parentPath, file.name), 'latin1'));
    expect(issuer.issued.length).toBeGreaterThanOrEqual(4);
    expect(issuer.issued.filter((secret) => texts.some((text) => text.includes(secret)))).toEqual([]);
  });
});
