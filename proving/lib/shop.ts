import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Page, servePages } from '@gatehouse/testkit';

/** What visitors of the shop have done. */
export interface Shop extends AsyncDisposable {
  readonly url: (path: string) => string;
  readonly dial: Awaited<ReturnType<typeof servePages>>['dial'];
  readonly orders: Record<string, string>[];
  readonly uploads: string[];
  readonly letters: string[];
  readonly logins: string[];
}

const products = ['Lamp', 'Chair', 'Desk', 'Shelf', 'Clock', 'Rug', 'Vase', 'Mirror'].map((name, index) => ({
  name,
  price: 10 + 7 * index,
  kind: index % 2 === 0 ? 'light' : 'heavy',
}));

const layout = (title: string, body: string) =>
  `<!doctype html><title>${title}</title><nav><a href="/">Home</a> <a href="/cart">Cart</a> <a href="/terms" target="_blank">Terms</a> <a href="/login">Log in</a></nav><h1>${title}</h1>${body}`;

const checkout = `<form method="post" action="/order">
<label>Name <input name="name" required></label><label>Street <textarea name="street" required></textarea></label>
<label>Country <select name="country"><option value="">Choose</option><option value="de">Germany</option><option value="fr">France</option></select></label>
<fieldset><legend>Shipping</legend><label><input type="radio" name="shipping" value="post"> Post</label><label><input type="radio" name="shipping" value="courier"> Courier</label></fieldset>
<label><input type="checkbox" name="gift" value="yes"> Gift</label>
<iframe title="Card" srcdoc="<label>Card number <input oninput='parent.document.forms[0].card.value = this.value'></label>"></iframe>
<input type="hidden" name="card"><button>Order now</button></form>`;

/** A shop with a search, a cart, a check-out with a frame, an upload form, shadow roots, dialogs and a login in two steps. */
export async function openShop(): Promise<Shop> {
  const orders: Record<string, string>[] = [];
  const uploads: string[] = [];
  const letters: string[] = [];
  const logins: string[] = [];
  const cart = new Map<string, number>();

  const html = (response: ServerResponse, title: string, body: string) =>
    void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(layout(title, body));
  const moved = (response: ServerResponse, to: string) => void response.writeHead(303, { location: to }).end();
  const paramsOf = (request: IncomingMessage) => new URL(request.url ?? '/', 'http://any.test').searchParams;

  const pages: Record<string, Page> = {
    '/'(request, response) {
      cart.clear();
      const query = paramsOf(request);
      const found = products
        .filter(
          ({ name, kind }) => name.toLowerCase().includes((query.get('q') ?? '').toLowerCase()) && (query.get('kind') ?? '') in { '': 1, [kind]: 1 },
        )
        .toSorted((a, b) => (query.get('sort') === 'dear' ? b.price - a.price : a.price - b.price));
      html(
        response,
        'Shop',
        `<form><label>Search <input name="q"></label><label>Kind <select name="kind"><option value="">all</option><option>light</option><option>heavy</option></select></label>
<label>Sort <select name="sort"><option value="cheap">cheapest</option><option value="dear">dearest</option></select></label><button>Find</button></form>
<ul>${found.map(({ name, price }) => `<li><a href="/product?name=${name}">${name}</a> ${price} euros</li>`).join('')}</ul>
<div id="letter"></div><script>const root = letter.attachShadow({ mode: 'open' });
root.innerHTML = '<label>Mail <input></label><button>Subscribe</button>';
root.querySelector('button').onclick = () => fetch('/letter', { method: 'POST', body: root.querySelector('input').value }).then(() => { document.querySelector('h1').textContent = 'Subscribed'; });</script>`,
      );
    },
    '/product'(request, response) {
      const product = products.find(({ name }) => name === paramsOf(request).get('name'));
      html(
        response,
        product?.name ?? 'None',
        `<p>${product?.price} euros</p><form method="post" action="/add?name=${product?.name}"><label>Quantity <input type="number" name="count" value="1"></label><button>Add to cart</button></form>`,
      );
    },
    async '/add'(request, response) {
      const count = Number(new URLSearchParams(await bodyOf(request)).get('count'));
      cart.set(paramsOf(request).get('name') ?? '', count);
      moved(response, '/cart');
    },
    '/cart': (_, response) =>
      html(
        response,
        'Cart',
        `<ul>${[...cart].map(([name, count]) => `<li>${count} × ${name} <button onclick="if (confirm('Remove ${name}?')) location='/remove?name=${name}'">Remove ${name}</button></li>`).join('')}</ul><a href="/checkout">Check out</a> <a href="/invoice" download>Invoice</a>`,
      ),
    '/remove'(request, response) {
      cart.delete(paramsOf(request).get('name') ?? '');
      moved(response, '/cart');
    },
    '/checkout': (_, response) => html(response, 'Check out', checkout),
    async '/order'(request, response) {
      orders.push({
        ...Object.fromEntries(new URLSearchParams(await bodyOf(request))),
        items: [...cart].map(([name, count]) => `${count} ${name}`).join(),
      });
      moved(response, '/thanks');
    },
    '/thanks': (_, response) => html(response, 'Thank you', '<p>The order is on its way.'),
    '/terms': (_, response) => html(response, 'Terms', '<p>Returns within 30 days.'),
    '/invoice': (_, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/plain', 'content-disposition': 'attachment; filename="invoice.txt"' })
        .end('Total: 10 euros'),
    '/late': (_, response) =>
      html(response, 'Late', `<p id="stock">Asking</p><script>setTimeout(() => { stock.textContent = 'In stock: 7' }, 600)</script>`),
    '/endless': (_, response) =>
      html(
        response,
        'Endless',
        `<div id="list"></div><script>let n = 0; const more = () => { for (let i = 0; i < 20; i += 1) list.insertAdjacentHTML('beforeend', '<p style="height:60px">' + (++n === 50 ? '<button onclick="document.title=\\'found\\'">Prize</button>' : 'Row ' + n)) }; more(); onscroll = () => { if (scrollY + innerHeight > document.body.scrollHeight - 200 && n < 100) more() }</script>`,
      ),
    '/support': (_, response) =>
      html(
        response,
        'Support',
        `<label>Photo <input type="file" onchange="this.files[0].text().then((text) => fetch('/photo', { method: 'POST', body: text })).then(() => { document.querySelector('h1').textContent = 'Received' })"></label>`,
      ),
    '/login': (_, response) =>
      html(
        response,
        'Log in',
        `<form method="post" action="/password"><label>User <input name="user"></label><label>Password <input name="password" type="password"></label><button>Next</button></form>`,
      ),
    async '/password'(request, response) {
      const form = new URLSearchParams(await bodyOf(request));
      if (form.get('password') !== 'secret-of-the-shop-4711') return moved(response, '/login');
      html(
        response,
        'Second step',
        `<form method="post" action="/code"><label>Code <input name="code" autofocus></label><button>Log in</button></form>`,
      );
    },
    async '/code'(request, response) {
      const isRight = new URLSearchParams(await bodyOf(request)).get('code') === '123456';
      if (isRight) logins.push('in');
      html(response, isRight ? 'Welcome back' : 'Wrong code', '');
    },
    async '/letter'(request, response) {
      letters.push(await bodyOf(request));
      response.end();
    },
    async '/photo'(request, response) {
      uploads.push(await bodyOf(request));
      response.end();
    },
  };
  const served = await servePages(pages);
  return {
    url: (path) => served.url(path),
    dial: served.dial,
    orders,
    uploads,
    letters,
    logins,
    [Symbol.asyncDispose]: () => served[Symbol.asyncDispose](),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
