// undici is CommonJS, and a bundle that imports it on demand gets no named exports from it; this module provides them in both cases.
export { buildConnector, Client, Pool } from 'undici';
