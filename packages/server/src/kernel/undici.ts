// oxlint-disable-next-line typescript/triple-slash-reference -- ambient modules, for every project that compiles this file
/// <reference path="./undici-parts.d.ts" />
// Only what is used of undici: its entry point also loads fetch, WebSocket, caches and mocks, three quarters of the package. undici is
// CommonJS, and a bundle that imports it on demand gets no named exports from it; this module provides them in both cases.
import request from 'undici/lib/api/api-request.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Client from 'undici/lib/dispatcher/client.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
import Pool from 'undici/lib/dispatcher/pool.js';

// As the entry point does with all of its methods.
Object.assign(Dispatcher.prototype, { request });

export { Agent, buildConnector, Client, Pool };
