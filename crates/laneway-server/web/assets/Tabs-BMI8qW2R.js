<<<<<<<< HEAD:crates/laneway-server/web/assets/Tabs-x7CB9kpo.js
import{F as e,L as t,O as n,P as r,Q as i,W as a,ct as o,h as s,q as c}from"./words-m6AXZLeD.js";var l=t(`<a class="svelte-1pyzve8"> </a>`),u=t(`<nav class="svelte-1pyzve8"></nav>`);function d(t,d){var f=u();n(f,21,()=>d.tabs,e=>e.href,(t,n)=>{var o=l(),u=i(o,!0);c(()=>{s(o,`href`,a(n).href),s(o,`aria-current`,a(n).here?`page`:void 0),r(u,a(n).text)}),e(t,o)}),o(f),c(()=>s(f,`aria-label`,d.label)),e(t,f)}export{d as t};
========
import{F as e,L as t,O as n,P as r,Q as i,W as a,ct as o,h as s,q as c}from"./words-DpOiF0jJ.js";var l=t(`<a class="svelte-1pyzve8"> </a>`),u=t(`<nav class="svelte-1pyzve8"></nav>`);function d(t,d){var f=u();n(f,21,()=>d.tabs,e=>e.href,(t,n)=>{var o=l(),u=i(o,!0);c(()=>{s(o,`href`,a(n).href),s(o,`aria-current`,a(n).here?`page`:void 0),r(u,a(n).text)}),e(t,o)}),o(f),c(()=>s(f,`aria-label`,d.label)),e(t,f)}export{d as t};
>>>>>>>> faces:crates/laneway-server/web/assets/Tabs-BMI8qW2R.js
