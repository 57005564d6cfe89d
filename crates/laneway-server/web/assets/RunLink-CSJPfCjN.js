<<<<<<<< HEAD:crates/laneway-server/web/assets/RunLink-CSJPfCjN.js
import{F as e,L as t,P as n,Q as r,at as i,h as a,ot as o,q as s}from"./words-m6AXZLeD.js";import{h as c}from"./toasts.svelte-oNJ6Yt5K.js";import{s as l}from"./Loading-Cuq2hfW_.js";var u=t(`<a class="mono nowrap"> </a>`);function d(t,d){o(d,!0);var f=u(),p=r(f,!0);s((e,t)=>{a(f,`href`,e),a(f,`title`,d.run),n(p,t)},[()=>c(d.run),()=>l(d.run)]),e(t,f),i()}export{d as t};
========
import{F as e,L as t,P as n,Q as r,at as i,h as a,ot as o,q as s}from"./words-DpOiF0jJ.js";import{h as c}from"./toasts.svelte-QIzQsLJr.js";import{s as l}from"./Loading-DrOZGxs_.js";var u=t(`<a class="mono nowrap"> </a>`);function d(t,d){o(d,!0);var f=u(),p=r(f,!0);s((e,t)=>{a(f,`href`,e),a(f,`title`,d.run),n(p,t)},[()=>c(d.run),()=>l(d.run)]),e(t,f),i()}export{d as t};
>>>>>>>> faces:crates/laneway-server/web/assets/RunLink-C3vRfm1Y.js
