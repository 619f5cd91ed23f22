// A model API on HTTPS, as far as Claude Code (/v1/messages), Codex (/v1/responses) and Gemini CLI
// (/v1beta/models/MODEL:streamGenerateContent) need one: all of them streamed.
// usage: node mock_model.js PLAN.json, with
//   { "address": "45.45.45.2", "port": 443, "cert": FILE, "key": FILE, "log": FILE,
//     "steps": [{ "write": PATH, "content": TEXT } | { "shell": SCRIPT } | { "read": PATH } ...], "answer": TEXT }
// Every conversation is led through the steps, each asked for with a tool that the agent itself offers, then given the
// answer, in which {result} stands for the last tool result. Which step comes next is read off the conversation (the tool results it holds), so nothing is remembered.
// The log gets one JSON object a line: requests as they come, tool results as the agent sends them.
'use strict';
const fs = require('fs');
const https = require('https');

const plan = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const log = (entry) => fs.appendFileSync(plan.log, JSON.stringify(entry) + '\n');
const textOf = (content) =>
  typeof content === 'string' ? content : (content || []).map((part) => part.text || part.output || '').join('');

const answerTo = (result) => plan.answer.replace('{result}', () => result);

// Sends server-sent events, each with its type as the event's name.
function stream(response, events) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

// ---- Anthropic ----

function anthropicCall(step) {
  if (step.write !== undefined) return { name: 'Write', input: { file_path: step.write, content: step.content } };
  if (step.read !== undefined) return { name: 'Read', input: { file_path: step.read } };
  return { name: 'Bash', input: { command: step.shell, description: 'Run the step of the test' } };
}

function anthropicEvents(body, block, delta, reason) {
  return [
    { type: 'message_start', message: { id: 'msg_test', type: 'message', role: 'assistant', model: body.model, content: [],
      stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ];
}

function anthropic(body, response) {
  const offered = new Set((body.tools || []).map((tool) => tool.name));
  const results = [];
  for (const message of body.messages) {
    if (!Array.isArray(message.content)) continue;
    for (const part of message.content) if (part.type === 'tool_result') results.push(part);
  }
  if (results.length) log({ result: results.length, text: textOf(results.at(-1).content), error: !!results.at(-1).is_error });
  const step = offered.size ? plan.steps[results.length] : undefined;
  if (step === undefined) {
    const text = offered.size ? answerTo(results.length ? textOf(results.at(-1).content) : '') : 'A title';
    if (!body.stream) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ id: 'msg_test', type: 'message', role: 'assistant', model: body.model,
        content: [{ type: 'text', text }], stop_reason: 'end_turn', stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 } }));
      return;
    }
    stream(response, anthropicEvents(body, { type: 'text', text: '' }, { type: 'text_delta', text }, 'end_turn'));
    return;
  }
  const call = anthropicCall(step);
  if (!offered.has(call.name)) log({ missing: call.name, offered: [...offered] });
  stream(response, anthropicEvents(body, { type: 'tool_use', id: `toolu_${results.length}`, name: call.name, input: {} },
    { type: 'input_json_delta', partial_json: JSON.stringify(call.input) }, 'tool_use'));
}

// ---- OpenAI ----

// Some models are offered their tools by the conversation, in groups.
function openaiTools(body) {
  const grouped = body.input.filter((item) => item.type === 'additional_tools').flatMap((item) => item.tools);
  return [...(body.tools || []), ...grouped.flatMap((group) =>
    (group.tools || []).map((tool) => ({ ...tool, namespace: group.name })))];
}

// The item that asks for `step` with whichever of its tools this Codex offers.
function openaiCall(step, tools, id) {
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  let script = step.read === undefined ? step.shell : `cat ${step.read}`;
  if (step.write !== undefined) {
    const patch = `*** Begin Patch\n*** Add File: ${step.write}\n` +
      step.content.replace(/\n$/, '').split('\n').map((line) => `+${line}\n`).join('') + '*** End Patch\n';
    const tool = named.get('apply_patch');
    if (tool && tool.type === 'custom') {
      return { type: 'custom_tool_call', id: `ctc_${id}`, call_id: `call_${id}`, name: 'apply_patch', input: patch };
    }
    if (tool) {
      return { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, name: 'apply_patch',
        arguments: JSON.stringify({ input: patch }) };
    }
    script = `apply_patch <<'PATCH'\n${patch}PATCH\n`;
  }
  // One tool that runs JavaScript, from which the others are called.
  const code = named.get('exec');
  if (code && code.type === 'custom') {
    return { type: 'custom_tool_call', id: `ctc_${id}`, call_id: `call_${id}`, name: 'exec', namespace: code.namespace,
      input: `text((await tools.exec_command(${JSON.stringify({ cmd: script, yield_time_ms: 20000 })})).output);` };
  }
  const shells = {
    exec_command: { cmd: script, yield_time_ms: 20000 },
    shell_command: { command: script, timeout_ms: 20000 },
    shell: { command: ['bash', '-lc', script], timeout_ms: 20000 },
  };
  const name = Object.keys(shells).find((candidate) => named.has(candidate));
  if (!name) log({ missing: 'a shell tool', offered: tools.map((tool) => tool.name || tool.type) });
  return { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, name: name || 'shell',
    arguments: JSON.stringify(shells[name || 'shell']) };
}

function openai(body, response) {
  const results = body.input.filter((item) => /_call_output$/.test(item.type));
  if (results.length) log({ result: results.length, text: textOf(results.at(-1).output) });
  const step = plan.steps[results.length];
  const item = step === undefined
    ? { type: 'message', id: 'msg_test', role: 'assistant', status: 'completed',
      content: [{ type: 'output_text', text: answerTo(results.length ? textOf(results.at(-1).output) : ''), annotations: [] }] }
    : openaiCall(step, openaiTools(body), results.length);
  const base = { id: `resp_${results.length}`, object: 'response', model: body.model, output: [] };
  stream(response, [
    { type: 'response.created', response: { ...base, status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { ...base, status: 'completed', output: [item],
      usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1,
        output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 } } },
  ]);
}

// ---- Google ----

function googleCall(step) {
  if (step.write !== undefined) return { name: 'write_file', args: { file_path: step.write, content: step.content } };
  if (step.read !== undefined) return { name: 'read_file', args: { file_path: step.read } };
  return { name: 'run_shell_command', args: { command: step.shell, description: 'Run the step of the test' } };
}

// What a tool has put out, without what Gemini CLI says around it.
function googleResult(response) {
  const text = response.output || response.error || '';
  const framed = /^<untrusted_context>\nOutput: ([^]*)\n<\/untrusted_context>$/.exec(text);
  return framed ? framed[1] : text;
}

function google(body, streamed, response) {
  const offered = new Set((body.tools || []).flatMap((tool) => tool.functionDeclarations || []).map((tool) => tool.name));
  // A conversation that is taken up again may hold one twice.
  const results = [...new Map(body.contents.flatMap((content) => content.parts).filter((part) => part.functionResponse)
    .map((part) => [part.functionResponse.id, part])).values()];
  const last = results.length ? googleResult(results.at(-1).functionResponse.response) : '';
  if (results.length) log({ result: results.length, text: last });
  const step = offered.size ? plan.steps[results.length] : undefined;
  const call = step && googleCall(step);
  if (call && !offered.has(call.name)) log({ missing: call.name, offered: [...offered] });
  // Without tools it asks how hard the question is.
  const text = offered.size ? answerTo(last) : JSON.stringify({ complexity_reasoning: 'a test', complexity_score: 1 });
  const answer = { candidates: [{ content: { role: 'model', parts: [call ? { functionCall: call } : { text }] },
    finishReason: 'STOP', index: 0 }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
  response.writeHead(200, { 'content-type': streamed ? 'text/event-stream' : 'application/json' });
  response.end(streamed ? `data: ${JSON.stringify(answer)}\r\n\r\n` : JSON.stringify(answer));
}

const server = https.createServer({ cert: fs.readFileSync(plan.cert), key: fs.readFileSync(plan.key) },
  (request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url.split('?')[0];
      let body = {};
      try {
        body = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      } catch (problem) {
        log({ unreadable: String(problem) });
      }
      log({ request: `${request.method} ${request.url}`, host: request.headers.host,
        tools: (body.tools || []).map((tool) => tool.name || tool.type) });
      if (request.method === 'POST' && path.endsWith('/v1/messages')) return anthropic(body, response);
      if (request.method === 'POST' && path.endsWith('/v1/responses')) return openai(body, response);
      if (request.method === 'POST' && /:(stream)?[gG]enerateContent$/.test(path)) {
        return google(body, path.endsWith(':streamGenerateContent'), response);
      }
      response.writeHead(path === '/api/hello' ? 200 : 404, { 'content-type': 'application/json' });
      response.end('{}');
    });
  });
server.listen(plan.port, plan.address, () => process.stdout.write('ready\n'));
