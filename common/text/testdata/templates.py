"""Chat templates in the usual shapes, written for these tests."""

TEMPLATES = {
    "chatml_default_system": """\
{%- if messages[0].role != 'system' %}
    {{- '<|im_start|>system\\nBe helpful.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "inst": """\
{{ bos_token }}
{%- set system = '' %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim + '\\n\\n' %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate: user, assistant, user ...') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- ' [INST] ' ~ (system if loop.first else '') ~ message['content'] | trim ~ ' [/INST]' }}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' ~ message['content'] | trim ~ ' ' ~ eos_token }}
    {%- else %}
        {{- raise_exception('Unknown role ' + message['role']) }}
    {%- endif %}
{%- endfor %}
""",
    "headers": """\
{%- if not date is defined %}
    {%- set date = "1 Jan 2025" %}
{%- endif %}
{{- bos_token }}
{%- for message in messages %}
    {#- One header for each turn. #}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {%- if loop.first and message.role == 'system' %}
        {{- "Today: " + date + "\\n" }}
    {%- endif %}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "role_in_token": """\
{% for message in messages %}
{{ '<|' + message['role'] + '|>' }}{{ message['content'] }}<|end|>
{% endfor %}
{% if add_generation_prompt %}
<|assistant|>
{% else %}
{{ eos_token }}
{% endif %}
""",
    "reasoning": """\
{%- set ns = namespace(last=messages|length - 1, seen=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.seen and message.role == "user" %}
        {%- set ns.seen = true %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if '</think>' in content and message.role == "assistant" %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- if loop.index0 > ns.last %}
            {%- set content = '<think>' ~ thought ~ '</think>' ~ content %}
        {%- endif %}
    {%- endif %}
    {{- '<|' ~ loop.index ~ '/' ~ loop.length ~ '|>' ~ message.role | upper ~ ': ' ~ content ~ ('\\n' if not loop.last) }}
{%- endfor %}
""",
    "blocks": """\
{% set greeting %}
Hello from the template
{% endset %}
{% for message in messages if message.content %}
  {% if message.role in ['user', 'system'] %}
{{ loop.index }}. {{ message.content | replace('\\n', ' ') | trim }}
  {% elif message.role is equalto 'assistant' %}
  {% generation %}
{{ message.content }}
  {% endgeneration %}
  {% endif %}
  {% if loop.index == 3 %}
    {% break %}
  {% endif %}
{% else %}
nothing said
{% endfor %}
{{ greeting }}{{ messages | tojson }}
""",
}
