// Writes every request and answer that the documents show as a typed constant: node examples.mjs DOCUMENT PAGE… > examples.ts
import { readFileSync } from 'node:fs';
import { bundle, createConfig } from '@redocly/openapi-core';

const [document, ...pages] = process.argv.slice(2);
const { bundle: result } = await bundle({ ref: document, config: await createConfig({}), dereference: true });
const lines = ['import type { paths } from "./capper";', ''];
const constant = (type, value) => lines.push(`export const example${lines.length}: ${type} = ${JSON.stringify(value)};`);

for (const [path, item] of Object.entries(result.parsed.paths)) {
  for (const method of ['get', 'post', 'put', 'delete']) {
    const operation = item[method];
    if (!operation) continue;
    const type = `paths[${JSON.stringify(path)}]["${method}"]`;
    const json = (content) => Object.values(content?.['application/json']?.examples ?? {}).map((example) => example.value);
    for (const value of json(operation.requestBody?.content)) {
      constant(`${type}["requestBody"]["content"]["application/json"]`, value);
    }
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const value of json(response.content)) {
        constant(`${type}["responses"][${status}]["content"]["application/json"]`, value);
      }
    }
  }
}
const described = lines.length;
// template is the described path that a called one is of: of several, that with most of it written out.
const template = (path) => Object.keys(result.parsed.paths)
  .filter((described) => new RegExp(`^${described.replace(/\{\w+\}/g, '.+')}$`).test(path))
  .sort((a, b) => a.split('{').length - b.split('{').length || b.length - a.length)[0];

for (const page of pages) { // curl … URL/v1/filter … -d 'BODY', and the answer behind it
  const text = readFileSync(page, 'utf8').replaceAll('\\\n', ' ');
  for (const [, flags, path, rest, answer] of text.matchAll(/^\$ curl (.*?)'?http:\/\/[^\/]+(\/v1\/[^\s?']+)(.*)\n((?:(?!\$ |```).*\n)*)/gm)) {
    const body = rest.match(/ -d '([^']*)'/);
    const method = flags.match(/-X (\w+)/)?.[1].toLowerCase() ?? (body ? 'post' : 'get');
    const type = `paths[${JSON.stringify(template(path))}]["${method}"]`;
    if (body) constant(`${type}["requestBody"]["content"]["application/json"]`, JSON.parse(body[1]));
    if (!answer.startsWith('{') || answer.startsWith('{"error"') || answer.includes('…')) continue;
    constant(`${type}["responses"][200]["content"]["application/json"]`, JSON.parse(answer));
  }
}
if (described < 20 || lines.length < described + 4) throw new Error(`only ${described} examples described, ${lines.length - described} in pages`);
console.log(lines.join('\n'));
