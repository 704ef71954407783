// The package is CommonJS, which a bundle imported on demand gives no named exports; through this module it has them in both.
export { buildConnector, Client, Pool } from 'undici';
