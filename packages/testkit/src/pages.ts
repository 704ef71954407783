import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void | Promise<void>);

/** Serves pages under any name that ends in `.test`, for browsers whose names are resolved here. */
export async function servePages(pages: Readonly<Record<string, Page>>) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://any.test');
    requests.push(`${request.method} ${request.headers.host}${pathname}`);
    const page = pages[pathname];
    if (typeof page === 'function') return void page(request, response);
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page ?? 'not found');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const { port } = address;
  return {
    port,
    requests,
    url: (path: string, host = 'shop.test') => `http://${host}:${port}${path}`,
    /** How names are resolved: those that end in `.test` to this server. */
    dial: {
      allowAddresses: [`127.0.0.1:${port}`],
      async resolve(name: string) {
        if (name.endsWith('.test') || name === 'localhost') return ['127.0.0.1'];
        if (name.endsWith('.internal')) return ['10.0.0.1'];
        throw new Error(`The host ${name} was not found`);
      },
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
